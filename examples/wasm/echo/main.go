// Command echo prints what it was given: its arguments, its environment, and
// its standard input. Its first argument may be "exit=N", the exit code to end
// with, which it then also tells on standard error. It runs natively and, built
// with GOOS=wasip1 GOARCH=wasm, as a WebAssembly function.
package main

import (
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

func main() {
	args, code := os.Args[1:], 0
	if len(args) > 0 && strings.HasPrefix(args[0], "exit=") {
		number, err := strconv.Atoi(strings.TrimPrefix(args[0], "exit="))
		if err != nil || number < 0 || number > 255 {
			leave("echo: an exit code is a number from 0 to 255\n", 2)
		}
		args, code = args[1:], number
	}
	var out strings.Builder
	for _, argument := range args {
		out.WriteString("arg " + strconv.Quote(argument) + "\n")
	}
	env := os.Environ()
	slices.Sort(env)
	for _, variable := range env {
		out.WriteString("env " + strconv.Quote(variable) + "\n")
	}
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		leave("echo: "+err.Error()+"\n", 1)
	}
	out.Write(input)
	if _, err := os.Stdout.WriteString(out.String()); err != nil {
		leave("echo: "+err.Error()+"\n", 1)
	}
	if code != 0 {
		leave("echo: asked to end with "+strconv.Itoa(code)+"\n", code)
	}
}

func leave(message string, code int) {
	_, _ = os.Stderr.WriteString(message)
	os.Exit(code)
}
