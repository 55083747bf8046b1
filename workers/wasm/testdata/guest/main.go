// Command guest does what its first argument says.
package main

import (
	"io"
	"os"
	"time"
)

var sink [][]byte

func main() {
	switch os.Args[1] {
	case "spin":
		println("spinning")
		for i := 0; ; i++ {
			if i < 0 {
				println("never")
			}
		}
	case "sleep":
		println("sleeping")
		time.Sleep(time.Hour)
	case "eat":
		for {
			piece := make([]byte, 1<<20)
			for i := range piece {
				piece[i] = byte(i)
			}
			sink = append(sink, piece)
		}
	case "panic":
		panic("on purpose")
	case "recurse":
		println(recurse(1))
	case "reach":
		reach()
	case "clock":
		before := time.Now()
		time.Sleep(time.Millisecond)
		if time.Since(before) < time.Millisecond || before.Year() < 2024 {
			os.Exit(9)
		}
	case "copy":
		if _, err := io.Copy(os.Stdout, os.Stdin); err != nil {
			os.Exit(9)
		}
	}
}

func recurse(n int) int {
	if n == 0 {
		return 0
	}
	return recurse(n+1) + 1
}

// reach tries to get at what a function may not have, and reports what it got.
func reach() {
	if _, err := os.ReadFile("/etc/passwd"); err == nil {
		println("read a file")
	}
	if _, err := os.ReadDir("."); err == nil {
		println("read a directory")
	}
	if err := os.WriteFile("created", nil, 0o600); err == nil {
		println("wrote a file")
	}
	if len(os.Environ()) > 0 {
		println("saw an environment")
	}
	os.Exit(3)
}
