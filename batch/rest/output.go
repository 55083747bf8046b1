package rest

import (
	"encoding/base64"
	"unicode/utf8"

	"github.com/futura-run/futura/batch"
)

// outputBody is what an attempt left behind, as in b7s. A stream that is not UTF-8
// stands in it twice: with U+FFFD for what is none, as b7s has it, and whole in
// base64.
type outputBody struct {
	Stdout       string `json:"stdout" doc:"What is not UTF-8 is U+FFFD"`
	StdoutBase64 string `json:"stdout_base64,omitempty" doc:"The whole, if it is not UTF-8"`
	Stderr       string `json:"stderr,omitempty" doc:"What is not UTF-8 is U+FFFD"`
	StderrBase64 string `json:"stderr_base64,omitempty" doc:"The whole, if it is not UTF-8"`
	ExitCode     int    `json:"exit_code"`
}

// outputOf returns a result with placeholders for its standard output, and what takes
// their places.
func outputOf(r *batch.Result) (outputBody, []splice) {
	body := outputBody{Stdout: placeholder, Stderr: r.Stderr, ExitCode: r.ExitCode}
	splices := []splice{{stdoutField, r.Stdout}}
	if !utf8.ValidString(r.Stdout) {
		body.StdoutBase64, splices = placeholder, append(splices, splice{encodedField, r.Stdout})
	}
	if !utf8.ValidString(r.Stderr) {
		body.StderrBase64 = base64.StdEncoding.EncodeToString([]byte(r.Stderr))
	}
	return body, splices
}

// usageBody is what an attempt took, as in b7s.
type usageBody struct {
	WallClock   int64 `json:"wall_clock_time,omitempty" doc:"Nanoseconds"`
	CPUUser     int64 `json:"cpu_user_time,omitempty" doc:"Nanoseconds; left out where it is not known"`
	CPUSys      int64 `json:"cpu_sys_time,omitempty" doc:"Nanoseconds; left out where it is not known"`
	MemoryMaxKB int64 `json:"memory_max_kb,omitempty" doc:"In units of 1,024 bytes; left out where it is not known"`
}

func usageOf(u *batch.Usage) usageBody {
	return usageBody{int64(u.WallClock), int64(u.CPUUser), int64(u.CPUSys), u.MemoryMaxKB}
}
