// Command echo prints its first argument. With the argument fail it exits with
// status 3, with sleep=DURATION it sleeps first, with stdin it prints the
// standard input too, and with env=NAME a variable.
package main

import (
	"io"
	"os"
	"strings"
	"time"
)

func main() {
	args := os.Args[1:]
	if len(args) == 0 {
		return
	}
	out, failed := args[0], false
	for _, arg := range args[1:] {
		name, value, _ := strings.Cut(arg, "=")
		switch name {
		case "fail":
			failed = true
		case "sleep":
			d, err := time.ParseDuration(value)
			if err != nil {
				panic(err)
			}
			time.Sleep(d)
		case "stdin":
			in, err := io.ReadAll(os.Stdin)
			if err != nil {
				panic(err)
			}
			out += string(in)
		case "env":
			out += os.Getenv(value)
		}
	}
	_, _ = os.Stdout.WriteString(out)
	if failed {
		_, _ = os.Stderr.WriteString("asked to fail")
		os.Exit(3)
	}
}
