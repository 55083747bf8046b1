// Command logs finds lines in a log that may be larger than memory: values that are put,
// functions that run where their input is, and results that are written and read as
// streams. docs/guide/go.md goes through it.
//
//	go run ./examples/logs ERROR /var/log/syslog
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/futura-run/futura"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: logs WORD FILE")
		os.Exit(2)
	}
	log, err := os.Open(os.Args[2])
	if err == nil {
		defer log.Close()
		err = run(context.Background(), os.Args[1], log, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, word string, log io.Reader, out io.Writer) (err error) {
	node, err := futura.Open(ctx, "memory:",
		futura.WorkerOptions(workers.Options{Slots: 2, Objects: workers.ObjectOptions{Memory: 256 << 20, Above: -1}}),
		futura.Function(search.Bind(searchLog)),
		futura.Function(count.Bind(countLines)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	return find(ctx, node.Client, word, log, out)
}

// Query is what is looked for, and in which log.
type Query struct {
	Word string
	Log  futures.ID
}

var search = futures.Define[Query, []byte]("search", futures.AsObject())

// searchLog writes the lines that have the word, instead of returning them.
func searchLog(ctx context.Context, q Query) (none []byte, err error) {
	client, err := futures.FromContext(ctx)
	if err != nil {
		return none, err
	}
	log, err := client.Future(q.Log).Open(ctx)
	if err != nil {
		return none, err
	}
	defer log.Close()
	result, err := workers.ResultWriter(ctx)
	if err != nil {
		return none, err
	}
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if !strings.Contains(lines.Text(), q.Word) {
			continue
		}
		if _, err := fmt.Fprintln(result, lines.Text()); err != nil {
			return none, err
		}
	}
	return none, lines.Err()
}

// Found is an input that is small enough to be taken whole.
type Found struct {
	Lines futures.Arg[[]byte]
}

var count = futures.Define[Found, int]("count")

func countLines(_ context.Context, f Found) (int, error) {
	return strings.Count(string(f.Lines.Get()), "\n"), nil
}

// find puts a log, has it searched by the worker that holds it, and copies what was
// found. Nothing but the lines that were found is taken into memory.
func find(ctx context.Context, client *futures.Client, word string, log io.Reader, out io.Writer) error {
	stored, err := client.Put(ctx, log, futures.PutOptions{AsObject: true, Label: "log"})
	if err != nil {
		return err
	}
	found, err := search.Submit(ctx, client, Query{word, stored.ID()}, futures.MustBeNear(stored.ID()))
	if err != nil {
		return err
	}
	n, err := count.Call(ctx, client, Found{futures.From(found)})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d lines:\n", n)
	text, err := found.Open(ctx)
	if err != nil {
		return err
	}
	defer text.Close()
	_, err = io.Copy(out, text)
	return err
}
