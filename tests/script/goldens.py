"""Programs as the printer writes them: what is read from each prints the same text again."""

from __future__ import annotations

GOLDENS = {
    "matmul": """
@T.prim_func
def main(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"), C: T.Buffer((128, 128), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    # with T.block("root"):
    for i, j, k in T.grid(128, 128, 128):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A[vi, vk], B[vk, vj])
            T.writes(C[vi, vj])
            with T.init():
                C[vi, vj] = T.float32(0.0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
""",
    "tiled blocks": """
@T.prim_func
def main(A: T.Buffer((130,), "float32"), C: T.Buffer((130,), "float32")):
    # with T.block("root"):
    B = T.alloc_buffer((130,), scope="shared")
    for i_0 in T.parallel(5):
        for i_1 in T.vectorized(32):
            with T.block("B"):
                v = T.axis.spatial(130, i_0 * 32 + i_1)
                T.where(i_0 * 32 + i_1 < 130)
                T.reads(A[v])
                T.writes(B[v])
                T.block_attr({"name": "B", "pragma_x": 1})
                B[v] = A[v] * T.float32(2.0)
        for i_1 in range(2, 6):
            with T.block("C"):
                v = T.axis.spatial((2, 6), i_1)
                T.reads(B[v:v + 2])
                T.writes(C[v])
                C[v] = B[v] + B[v + 1]
""",
    "match_buffer of a region": """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32")):
    # with T.block("root"):
    for i, j in T.grid(4, 4):
        with T.block("tile"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads()
            T.writes(A[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4])
            B = T.match_buffer(A[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4], (4, 4), offset_factor=1)
            for x, y in T.grid(4, 4):
                B[x, y] = T.float32(1.0)
""",
    "symbolic shapes": """
@T.prim_func
def main(a: T.handle, b: T.handle, k: T.int32):
    n = T.int32()
    A = T.match_buffer(a, (n, 4), "int64")
    m, s = T.int64(), T.int32()
    B = T.match_buffer(b, (m,), "float16", strides=(s,), scope="shared", align=128, offset_factor=2)
    for i in range(n):
        A[i, k] = T.Cast("int64", i) + T.int64(7)
""",
    "allocation": """
@T.prim_func
def main(A: T.Buffer((64,), "float32")):
    B = T.decl_buffer((64,), scope="local")
    p = T.allocate([16], "float32x4", "global", annotations={"cached": T.bool(True)})
    C = T.decl_buffer((16,), "float32x4", data=p)
    for i in T.unroll(16):
        C[i] = T.Broadcast(A[i], 4)
        B[i * 4:i * 4 + 4] = C[i] + T.Broadcast(T.float32(1.0), 4)
        B[i:i + 8:2] = C[i]
    D = T.allocate_const([1, 2, 3], "int32", [3])
    E = T.Buffer((3,), "int32", data=D)
    A[E[0]] = B[1]
""",
    "scopes in the middle": """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), n: T.int32):
    with T.allocate([n], "float32", "global", condition=n < 3) as p:
        B = T.Buffer((n,), data=p)
        B[0] = A[0]
    with T.LetStmt(n * 2) as x:
        A[x] = T.float32(0.0)
    with T.attr(A.data, "pragma", 1):
        A[1] = T.float32(1.0)
    with T.Assert(n < 4, "n is too large"):
        A[2] = T.float32(2.0)
    with T.launch_thread("threadIdx.x", 32) as threadIdx_x:
        A[threadIdx_x] = T.float32(3.0)
    with T.decl_buffer((64,), data=A.data) as V:
        V[3] = T.float32(4.0)
    T.evaluate(n)
""",
    "scopes to the end": """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), n: T.int32):
    assert n < 4, "n is too large"
    T.attr("default", "async_scope", 1)
    x: T.int64 = T.Cast("int64", n)
    p: T.handle("float32", "global") = A.data
    blockIdx_x = T.launch_thread("blockIdx.x", 8)
    T.realize(A[0:64])
    B = T.Buffer((64,), data=p)
    B[blockIdx_x] = T.Cast("float32", x)
""",
    "control": """
@T.prim_func
def main(A: T.Buffer((64,), "int32"), n: T.int32) -> T.int32:
    if n < 3 and not n == 2:
        A[0] = 1
    else:
        A[0] = 2
    while A[0] < 10 or n == 4:
        A[0] = A[0] + 1
    for i in T.thread_binding(4, thread="threadIdx.x"):
        if (n < 2 or i < 3) and A[i] != 5:
            A[i] = i
    for i in T.serial(8, annotations={"list": [1, "a"], "unroll": 2}):
        A[i] = T.Select(i < 4, i, i * -1)
    T.ret(A[0])
""",
    "shared thread axes": """
@T.prim_func
def main(A: T.Buffer((64,), "float32")):
    threadIdx_x = T.env_thread("threadIdx.x")
    with T.launch_thread(threadIdx_x, 32):
        A[threadIdx_x] = T.float32(1.0)
    T.launch_thread(threadIdx_x, 16)
    A[threadIdx_x] = T.float32(2.0)
""",
    "expressions": """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), n: T.int32, w: T.int64, b: T.bool):
    A[n - (n - 1)] = A[(n + 1) * 2 // 3 % 4] / (A[0] - A[1])
    A[T.min(n, 3)] = T.max(A[0], T.float32("-inf"))
    A[T.truncmod(n, 4)] = T.Cast("float32", T.Div(n, 2))
    A[T.Cast("int32", w + T.int64(1))] = T.if_then_else(b, T.exp(A[0]), T.float32("nan"))
    A[T.bitwise_and(n, T.shift_left(1, n))] = T.float32(-1.5)
    x = T.int32()
    A[T.Let(x + 1, where={x: n * 2})] = T.float32(0.10000000149011612)
    A[T.Add(1, 2)] = T.Mul(A[0], T.float32(1.0))
    A[T.Shuffle([T.Ramp(n, 2, 4)], [1])] = T.reinterpret("float32", n)
    A[0] = T.call_extern("float32", "sinf", A[1], T.address_of(A[0]))
    A[1] = T.call_intrin("float32", "tir.pow", A[0], n)
    A[2] = T.Cast("float32", T.likely(b) == T.bool(False))
    T.call_packed("log", A.data, n, T.type_annotation("int8"))
    T.tvm_struct_get(A.data, 0, 1, "handle")
    T.tvm_storage_sync("shared")
    T.evaluate(T.Any())
""",
    "no dimensions": """
@T.prim_func
def main(A: T.Buffer((), "float32"), B: T.Buffer((0, 4), "float64"), C: T.Buffer((T.int64(4294967296),), "int8")):
    A[()] = A[()] + T.float32(1.0)
    for i in range(T.int64(4294967296)):
        C[i] = T.int8(0)
""",
    "predicated vectors": """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), n: T.int32):
    A.vstore([T.Ramp(n, 1, 4)], A.vload([T.Ramp(0, 1, 4)], predicate=T.Ramp(n, 1, 4) < T.Broadcast(64, 4)), predicate=T.Ramp(n, 1, 4) < T.Broadcast(64, 4))
    A[T.Ramp(n, -1, 4)] = T.Broadcast(T.float32(0.0), 4)
""",
    "reductions": """
@T.prim_func(private=True)
def main(A: T.Buffer((64,), "float32")):
    k = T.int32()
    T.evaluate(T.Reduce(T.comm_reducer(lambda x, y: x + y, [T.float32(0.0)]), [A[k]], [T.iter_var(k, T.Range(0, 64), "CommReduce", "")], T.bool(True), 0, []))
""",
}
