// Ctrl-C in long calls.
#ifndef TVM_SRC_INTERRUPT_H_
#define TVM_SRC_INTERRUPT_H_

namespace tvm {
namespace runtime {

// Between two operators, or two parts of a loop: raises what a signal that has come meanwhile means to the surrounding
// language. Costs the reading of a coarse clock; the language is asked some twenty times a second, and only on the
// thread that it handles signals on.
void PollSignals();

// Sleeps, and wakes up for signals.
void SleepUnlessInterrupted(int milliseconds);

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_INTERRUPT_H_
