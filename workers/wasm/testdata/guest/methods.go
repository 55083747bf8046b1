package main

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"os"
)

// kept is what a call keeps for the next, if it can.
var kept = map[string][]byte{}

//go:wasmexport futura_snapshot
func snapshot() { kept["start"] = []byte("of the start") }

// keep prints what it finds of calls before, and numbers that are and aren't the system's.
//
//go:wasmexport keep
func keep() int32 {
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 1
	}
	var system [8]byte
	if _, err := rand.Read(system[:]); err != nil {
		return 2
	}
	fmt.Println(len(kept), string(kept["start"]), string(kept["secret"]), len(input), mathrand.Uint64(),
		binary.LittleEndian.Uint64(system[:]))
	kept["secret"], kept["start"] = input, nil
	for len(kept) < 1000 {
		kept[fmt.Sprint(len(kept))] = make([]byte, 2000)
	}
	go func() { kept["later"] = input }()
	return 0
}
