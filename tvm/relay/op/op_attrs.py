"""All attribute records, under the classic module name."""

from __future__ import annotations

from .creation import (
    ArangeAttrs,
    InitOpAttrs,
    ShapeOfAttrs,
)
from .image.image import (
    Resize2DAttrs,
)
from .indexing import (
    GatherAttrs,
    GatherNDAttrs,
    OneHotAttrs,
    SliceLikeAttrs,
    StridedSliceAttrs,
    TakeAttrs,
    TriluAttrs,
)
from .joining import (
    ConcatenateAttrs,
    MeshgridAttrs,
    RepeatAttrs,
    SplitAttrs,
    StackAttrs,
    TileAttrs,
)
from .nn.activation import (
    BiasAddAttrs,
    DropoutAttrs,
    LeakyReluAttrs,
    MirrorPadAttrs,
    PadAttrs,
    PReluAttrs,
    SoftmaxAttrs,
)
from .nn.conv import (
    Conv1DAttrs,
    Conv2DAttrs,
    Conv2DTransposeAttrs,
)
from .nn.dense import (
    BatchMatmulAttrs,
    DenseAttrs,
    DensePackAttrs,
    MatmulAttrs,
)
from .nn.normalization import (
    BatchNormAttrs,
    GroupNormAttrs,
    InstanceNormAttrs,
    L2NormalizeAttrs,
    LayerNormAttrs,
)
from .nn.pooling import (
    AdaptivePool2DAttrs,
    AvgPool1DAttrs,
    AvgPool2DAttrs,
    GlobalPool2DAttrs,
    MaxPool1DAttrs,
    MaxPool2DAttrs,
)
from .reduce import (
    ArgReduceAttrs,
    ReduceAttrs,
    VarianceAttrs,
)
from .scan import (
    ScanopAttrs,
)
from .scatter import (
    ScatterElementsAttrs,
    ScatterNDAttrs,
)
from .shaping import (
    ExpandDimsAttrs,
    LayoutTransformAttrs,
    ReshapeAttrs,
    ReshapeLikeAttrs,
    ReverseAttrs,
    ReverseReshapeAttrs,
    SqueezeAttrs,
    TransposeAttrs,
)
from .unary import (
    CastAttrs,
    ClipAttrs,
)

__all__ = [
    "AdaptivePool2DAttrs",
    "ArangeAttrs",
    "ArgReduceAttrs",
    "AvgPool1DAttrs",
    "AvgPool2DAttrs",
    "BatchMatmulAttrs",
    "BatchNormAttrs",
    "BiasAddAttrs",
    "CastAttrs",
    "ClipAttrs",
    "ConcatenateAttrs",
    "Conv1DAttrs",
    "Conv2DAttrs",
    "Conv2DTransposeAttrs",
    "DenseAttrs",
    "DensePackAttrs",
    "DropoutAttrs",
    "ExpandDimsAttrs",
    "GatherAttrs",
    "GatherNDAttrs",
    "GlobalPool2DAttrs",
    "GroupNormAttrs",
    "InitOpAttrs",
    "InstanceNormAttrs",
    "L2NormalizeAttrs",
    "LayerNormAttrs",
    "LayoutTransformAttrs",
    "LeakyReluAttrs",
    "MatmulAttrs",
    "MaxPool1DAttrs",
    "MaxPool2DAttrs",
    "MeshgridAttrs",
    "MirrorPadAttrs",
    "OneHotAttrs",
    "PReluAttrs",
    "PadAttrs",
    "ReduceAttrs",
    "RepeatAttrs",
    "ReshapeAttrs",
    "ReshapeLikeAttrs",
    "Resize2DAttrs",
    "ReverseAttrs",
    "ReverseReshapeAttrs",
    "ScanopAttrs",
    "ScatterElementsAttrs",
    "ScatterNDAttrs",
    "ShapeOfAttrs",
    "SliceLikeAttrs",
    "SoftmaxAttrs",
    "SplitAttrs",
    "SqueezeAttrs",
    "StackAttrs",
    "StridedSliceAttrs",
    "TakeAttrs",
    "TileAttrs",
    "TransposeAttrs",
    "TriluAttrs",
    "VarianceAttrs",
]
