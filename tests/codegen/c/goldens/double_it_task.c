static int double_it_task(int task_id, TVMParallelGroupEnv* env, void* closure) {
  float* TVM_RESTRICT B_1 = ((struct double_it_task_closure*)closure)->B_1;
  float* TVM_RESTRICT A_1 = ((struct double_it_task_closure*)closure)->A_1;
  const int64_t chunk = ((int64_t)2 + env->num_task - 1) / env->num_task;
  const int64_t first = task_id * chunk;
  const int64_t last = first + chunk;
  const int64_t whole = 2;
  const int64_t end = last < whole ? last : whole;
  for (int64_t iteration = first; iteration < end; ++iteration) {
    const int32_t i_outer = (int32_t)iteration;
    for (int32_t lane = 0; lane < 4; ++lane) {
      B_1[(i_outer * 4) + lane] = A_1[(i_outer * 4) + lane] * 2.0f;
    }
  }
  (void)env;
  (void)task_id;
  return 0;
}
