package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/batch/rest"
	"github.com/futura-run/futura/internal/console"
)

func (a *app) batchWatchCommand() *cobra.Command {
	return a.oneBatch(&cobra.Command{
		Use: "watch ID", Short: "Follow a batch until it is over",
		Long:    "watch shows a progress bar on a terminal, and lines elsewhere. It exits with 1 if not every item is done.",
		Example: "  futura batch watch ID",
	}, func(cmd *cobra.Command, c *headClient, id string) error { return a.watchBatch(cmd.Context(), c, id) })
}

// watchBatch follows a batch, over connections that break.
func (a *app) watchBatch(ctx context.Context, c *headClient, id string) error {
	var last batchView
	bar := console.Progress(a.err, "items")
	show := func(v *batchView) error {
		moved := v.over() != last.over() || v.State != last.State
		last = *v
		switch {
		case bar != nil:
			bar(v.over(), v.Items)
		case moved && !a.json && !v.Status.Over():
			_, err := fmt.Fprintf(a.out, "%s: %d of %d items are over\n", v.stage(), v.over(), v.Items)
			return err
		}
		return nil
	}
	var err error
	for again := true; again && err == nil; {
		again = false
		before := last
		err = repeat(ctx, func() error {
			err := c.events(ctx, id, show)
			// A connection that brought something does not count as a failed try.
			if again = errors.Is(err, errCutOff) && !reflect.DeepEqual(last, before); again {
				return nil
			}
			return err
		})
	}
	if err != nil {
		return err
	}
	return errors.Join(a.show(&last, last.rows()), last.failure())
}

// errNoHead is returned for an answer that a head does not give.
var errNoHead = errors.New("the answer is not that of a head: check --url")

// errCutOff is returned for an answer that ended too early.
var errCutOff = errors.New("the head ended the connection")

// events calls show with how a batch stands until it is over.
func (c *headClient) events(ctx context.Context, id string, show func(*batchView) error) error {
	response, err := c.send(ctx, http.MethodGet, batchesPath+"/"+id+"/events", nil, "Accept", "text/event-stream")
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // it was read
	return readEvents(response.Body, show)
}

// maxEvent is the most bytes of one line of events.
const maxEvent = 4 << 20

// readEvents calls show with what events say until the batch is over.
func readEvents(from io.Reader, show func(*batchView) error) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxEvent)
	for {
		if !lines.Scan() {
			return errors.Join(errCutOff, lines.Err())
		}
		line := lines.Bytes()
		data, found := bytes.CutPrefix(line, []byte("data: "))
		if !found {
			continue
		}
		var v batchView
		if err := json.Unmarshal(data, &v); err != nil {
			return fmt.Errorf("%w: %w", errNoHead, err)
		}
		if err := show(&v); err != nil || v.Status.Over() {
			return err
		}
	}
}

func (a *app) batchResultCommand() *cobra.Command {
	var states string
	var stream bool
	cmd := a.oneBatch(&cobra.Command{
		Use: "result ID", Short: "Print the results of a batch",
		Long: "result prints a line for each item: its number, state, exit code, arguments and output, separated by " +
			"tabs. A terminal gets the beginning of each; elsewhere they are whole, with the ends of lines, tabs and " +
			"backslashes written as \\n, \\r, \\t and \\\\. With --ndjson each line is a JSON object with all that is known " +
			"of the item. With --json it prints the results by chunk, as the API of b7s does.",
		Example: "  futura batch result ID --state permanently_failed\n  futura batch result ID --ndjson > results.ndjson",
	}, func(cmd *cobra.Command, c *headClient, id string) error {
		if a.json {
			return a.printChunks(cmd.Context(), c, id)
		}
		return a.printItems(cmd.Context(), c, id, states, stream)
	})
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if a.json && (cmd.Flags().Changed("state") || cmd.Flags().Changed("ndjson")) {
			return usageError{errors.New("--json and --state or --ndjson exclude each other: --json prints all, by chunk")}
		}
		return nil
	}
	cmd.Flags().StringVar(&states, "state", "", "only items in these states, separated by commas")
	cmd.Flags().BoolVar(&stream, "ndjson", false, "print a line of JSON for each item")
	return cmd
}

// printChunks prints the results of a batch by chunk.
func (a *app) printChunks(ctx context.Context, c *headClient, id string) error {
	body, err := json.Marshal(map[string]string{"id": id})
	if err != nil {
		return err
	}
	response, err := c.send(ctx, http.MethodPost, batchSubmitPath+"/result", body, idempotencyKey, id) // it reads
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // it was read
	_, err = io.Copy(a.out, response.Body)
	return err
}

// printItems prints the items of a batch as they arrive.
func (a *app) printItems(ctx context.Context, c *headClient, id, states string, stream bool) error {
	query := url.Values{}
	if states != "" {
		query.Set("state", states)
	}
	response, err := c.send(ctx, http.MethodGet, batchesPath+"/"+id+"/results?"+query.Encode(), nil,
		"Accept", "application/x-ndjson")
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // it was read
	if stream {
		_, err = io.Copy(a.out, response.Body)
		return err
	}
	return a.writeItems(response.Body)
}

// writeItems writes a line for each item as it arrives.
func (a *app) writeItems(from io.Reader) error {
	items := json.NewDecoder(from)
	for {
		var item rest.ItemView
		err := items.Decode(&item)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return errors.Join(errCutOff, err)
		}
		if item.Result == nil {
			item.Result = &rest.StreamsView{}
		}
		text := item.Result.Stdout
		if item.Reason != "" {
			text = item.Reason
		}
		_, err = fmt.Fprintln(a.out, strings.Join([]string{
			strconv.Itoa(item.Index), a.inLine(item.State), strconv.Itoa(item.Result.ExitCode),
			a.inLine(strings.Join(item.Arguments, " ")), a.inLine(text),
		}, "\t"))
		if err != nil {
			return err
		}
	}
}
