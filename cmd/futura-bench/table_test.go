package main

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/bench"
	"github.com/futura-run/futura/internal/console"
)

// TestBenchTableFitsATerminal prints a report in which every number is large.
func TestBenchTableFitsATerminal(t *testing.T) {
	t.Parallel()
	r := bench.Report{Scenario: "contention", Store: "embedded"}
	fill(reflect.ValueOf(&r).Elem())
	shape := bench.Shape{Name: "fan-out"}
	fill(reflect.ValueOf(&shape).Elem())
	r.Shapes = []bench.Shape{shape}
	var out bytes.Buffer
	require.NoError(t, console.Aligned(&out, benchRows(&r)))
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 80, line)
	}
	for _, name := range []string{
		"rate ", "latency", "store per future", "processor per future", "allocated per future", "processor per second",
		"get over socket",
	} {
		require.Contains(t, out.String(), name)
	}
	// A scenario has rows for what it measures only.
	require.Len(t, benchRows(&bench.Report{Scenario: "wasm", P50: 1}), 3)
}

// fill sets every number of a report.
func fill(v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Float64:
			f.SetFloat(1234567.891)
		case reflect.Int, reflect.Int64:
			f.SetInt(12345678)
		case reflect.Struct:
			fill(f)
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
			if f.Elem().Kind() == reflect.Struct {
				fill(f.Elem())
			}
		}
	}
}
