package futures

import (
	"reflect"
	"runtime"
	"strings"
)

// maxFrames bounds how many callers are looked at for a step.
const maxFrames = 256

// calledByStep reports whether the code of a step called this goroutine's code, in the same attempt as far as the
// goroutine tells: below the first function of package workers another attempt begins, which a client that
// waits may run in its caller.
func calledByStep() bool {
	within := reflect.TypeFor[stepOptions]().PkgPath()
	beside := strings.TrimSuffix(within, "futures") + "workers."
	var callers [maxFrames]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers[:])])
	for {
		frame, more := frames.Next()
		switch {
		case strings.HasPrefix(frame.Function, within+".tryStep["),
			strings.HasPrefix(frame.Function, beside+"(*stepLog).RecordTx"):
			return true
		case strings.HasPrefix(frame.Function, beside), !more:
			return false
		}
	}
}
