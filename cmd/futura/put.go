package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/futures"
)

func (a *app) putCommand() *cobra.Command {
	var o futures.PutOptions
	cmd := &cobra.Command{
		Use: "put FILE|-", Short: "Put a file as the result of a new future",
		Long: "put stores a file of any size, or standard input, as the result of a new future, and prints its id: other " +
			"futures can take it as an input. The store has up to 1 MiB, or with --stored up to 64 MiB. More is held by the " +
			"worker with most room, which needs --object-memory; without such a worker the store has up to 64 MiB. What a " +
			"worker holds is lost with it, and can't be made again. An orderly stop keeps it: other workers take " +
			"it, or it waits in the directory of --object-dir for the next worker with that.",
		Example: "  futura put data.csv --as-object\n" +
			"  futura submit wasm:count --stdin-of $(futura put main.go)\n" +
			"  tar c . | futura put - --label sources",
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("key") && o.Key == "" {
				return usageError{errors.New("--key is empty: a repeated put would make another future")}
			}
			if o.AsObject && o.Stored {
				return usageError{errors.New("--as-object and --stored exclude each other")}
			}
			return a.put(cmd.Context(), args[0], o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Codec, "codec", "", "the value's encoding: raw, json or msgpack (default: raw)")
	flags.StringVar(&o.Key, "key", "", "idempotency key: the same key and content is the same future")
	flags.StringVar(&o.Label, "label", "", "a label for people")
	flags.StringArrayVar(&o.Tags, "tag", nil, "a tag to list it by; may be repeated, up to 8 times")
	flags.StringVar(&o.Queue, "queue", "", `the queue that it is counted in (default "default")`)
	flags.BoolVar(&o.WaitForRoom, "wait-for-room", false, "wait while a limit of the cluster is exceeded")
	flags.BoolVar(&o.AsObject, "as-object", false, "have a worker hold it, whatever its size")
	flags.BoolVar(&o.Stored, "stored", false, "have the store hold it, up to 64 MiB")
	return cmd
}

func (a *app) put(ctx context.Context, name string, o futures.PutOptions) error {
	in, size := a.in, int64(-1)
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return usageError{err}
		}
		defer file.Close()
		info, err := file.Stat()
		switch {
		case err != nil:
			return err
		case info.IsDir():
			return usageError{fmt.Errorf("%s is a directory: use tar c %s | futura put -", name, name)}
		case info.Mode().IsRegular():
			size = info.Size()
		}
		in = file
	}
	counted := &transferred{Reader: in}
	if bar := a.transferBar("put", size); bar != nil {
		defer bar.Clear()
		counted.Reader = io.TeeReader(in, bar)
	}
	o.Size = max(0, size)
	return a.openOrMake(ctx, func(c *futures.Client) error {
		f, err := c.Put(ctx, counted, o)
		if err != nil {
			return err
		}
		return a.say(map[string]any{"id": f.ID(), "existed": f.Existed(), "bytes": counted.n}, f.ID())
	})
}

// transferred counts what is read.
type transferred struct {
	io.Reader
	n int64
}

// Read implements io.Reader.
func (t *transferred) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	t.n += int64(n)
	return n, err
}
