"""All attribute records, under the classic module name.

Those of operators declared above this package are found by their type keys.
"""

from __future__ import annotations

from tvm.ir.node import NODE_TYPES

from .algorithm import ArgsortAttrs, SearchSortedAttrs, SortAttrs, TopKAttrs
from .broadcasting import CollapseSumToAttrs
from .creation import (
    ArangeAttrs,
    InitOpAttrs,
    ShapeOfAttrs,
)
from .distinct import UniqueAttrs
from .dyn.transform import DynExpandDimsAttrs
from .fixed_point import FixedPointMultiplyAttrs, FixedPointMultiplyPerAxisAttrs
from .image import (
    AffineGridAttrs,
    CropAndResizeAttrs,
    Dilation2DAttrs,
    GridSampleAttrs,
    Resize1DAttrs,
    Resize2DAttrs,
    Resize3DAttrs,
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
from .marks import CastHintAttrs, DebugAttrs, DeviceCopyAttrs, OnDeviceAttrs
from .nn.activation import (
    BiasAddAttrs,
    DropoutAttrs,
    LeakyReluAttrs,
    MirrorPadAttrs,
    PadAttrs,
    PReluAttrs,
    SoftmaxAttrs,
)
from .nn.bitserial import BinaryConv2DAttrs, BinaryDenseAttrs, BitPackAttrs
from .nn.conv import Conv2DAttrs
from .nn.conv_ranks import Conv1DAttrs, Conv3DAttrs
from .nn.conv_transpose import Conv1DTransposeAttrs, Conv2DTransposeAttrs, Conv3DTransposeAttrs
from .nn.dense import (
    BatchMatmulAttrs,
    DenseAttrs,
    DensePackAttrs,
    MatmulAttrs,
)
from .nn.local import DilateAttrs, LRNAttrs
from .nn.loss import NLLLossAttrs
from .nn.normalization import (
    BatchNormAttrs,
    GroupNormAttrs,
    InstanceNormAttrs,
    L2NormalizeAttrs,
    LayerNormAttrs,
)
from .nn.pooling import (
    AdaptivePool1DAttrs,
    AdaptivePool2DAttrs,
    AdaptivePool3DAttrs,
    AvgPool1DAttrs,
    AvgPool2DAttrs,
    AvgPool3DAttrs,
    GlobalPool2DAttrs,
    MaxPool1DAttrs,
    MaxPool2DAttrs,
    MaxPool3DAttrs,
)
from .nn.rearrange import BatchToSpaceNDAttrs, SpaceToBatchNDAttrs, SubPixelAttrs
from .nn.sparse import SparseConv2DAttrs, SparseDenseAttrs
from .nn.special import CorrelationAttrs, DeformableConv2DAttrs, FIFOBufferAttrs
from .nn.upsampling import UpSampling3DAttrs, UpSamplingAttrs
from .nn.winograd import Conv2DWinogradAttrs, ConvWinogradWeightTransformAttrs
from .random import (
    MultinomialAttrs,
    NormalAttrs,
    ThreefryGenerateAttrs,
    UniformAttrs,
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
from .sequence import (
    MatrixSetDiagAttrs,
    ReverseSequenceAttrs,
    SequenceMaskAttrs,
    SlidingWindowAttrs,
)
from .setting import EinsumAttrs, SparseToDenseAttrs
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
from .signal import DFTAttrs, STFTAttrs
from .signal import STFTAttrs as StftAttrs
from .unary import (
    CastAttrs,
    ClipAttrs,
)
from .vision import (
    AllClassNonMaximumSuppressionAttrs,
    GetValidCountsAttrs,
    MultiBoxPriorAttrs,
    MultiBoxTransformLocAttrs,
    NonMaximumSuppressionAttrs,
    ProposalAttrs,
    RegularNonMaximumSuppressionAttrs,
    ROIAlignAttrs,
    ROIPoolAttrs,
    YoloReorgAttrs,
)

__all__ = [
    "BinaryConv2DAttrs",
    "BinaryDenseAttrs",
    "BitPackAttrs",
    "CorrelationAttrs",
    "DeformableConv2DAttrs",
    "FIFOBufferAttrs",
    "DynExpandDimsAttrs",
    "SparseConv2DAttrs",
    "SparseDenseAttrs",
    "CastHintAttrs",
    "DebugAttrs",
    "DeviceCopyAttrs",
    "OnDeviceAttrs",
    "UniqueAttrs",
    "DFTAttrs",
    "STFTAttrs",
    "StftAttrs",
    "MultinomialAttrs",
    "NormalAttrs",
    "ThreefryGenerateAttrs",
    "UniformAttrs",
    "AllClassNonMaximumSuppressionAttrs",
    "GetValidCountsAttrs",
    "MultiBoxPriorAttrs",
    "MultiBoxTransformLocAttrs",
    "NonMaximumSuppressionAttrs",
    "ProposalAttrs",
    "ROIAlignAttrs",
    "ROIPoolAttrs",
    "RegularNonMaximumSuppressionAttrs",
    "YoloReorgAttrs",
    "SparseToDenseAttrs",
    "EinsumAttrs",
    "SlidingWindowAttrs",
    "SequenceMaskAttrs",
    "ReverseSequenceAttrs",
    "MatrixSetDiagAttrs",
    "FixedPointMultiplyPerAxisAttrs",
    "FixedPointMultiplyAttrs",
    "CollapseSumToAttrs",
    "UpSamplingAttrs",
    "UpSampling3DAttrs",
    "SubPixelAttrs",
    "SpaceToBatchNDAttrs",
    "BatchToSpaceNDAttrs",
    "NLLLossAttrs",
    "LRNAttrs",
    "DilateAttrs",
    "AffineGridAttrs",
    "CropAndResizeAttrs",
    "Dilation2DAttrs",
    "GridSampleAttrs",
    "Resize1DAttrs",
    "Resize3DAttrs",
    "AdaptivePool2DAttrs",
    "AdaptivePool1DAttrs",
    "AdaptivePool3DAttrs",
    "AvgPool3DAttrs",
    "MaxPool3DAttrs",
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
    "Conv1DTransposeAttrs",
    "Conv2DTransposeAttrs",
    "Conv2DWinogradAttrs",
    "Conv3DAttrs",
    "ConvWinogradWeightTransformAttrs",
    "Conv3DTransposeAttrs",
    "SortAttrs",
    "ArgsortAttrs",
    "TopKAttrs",
    "SearchSortedAttrs",
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


def __getattr__(name: str) -> type:
    found = NODE_TYPES.get(f"relay.attrs.{name}")
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found
