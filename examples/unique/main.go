// Command unique keeps work from being done twice: a sync that many events ask for,
// a search index of which only the last state counts, a nightly report, and a welcome
// mail that nobody gets twice. docs/guide/unique.md goes through it.
//
//	go run ./examples/unique
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/futura-run/futura"
	"github.com/futura-run/futura/futures"
)

var (
	syncAccount = futures.Define[string, string]("sync-account")
	index       = futures.Define[Page, string]("index")
	report      = futures.Define[string, string]("report")
	welcome     = futures.Define[string, string]("welcome")
)

// Page is a version of a page that is to be found.
type Page struct {
	URL     string
	Version int
}

func main() {
	store := flag.String("store", "memory:", "where futures are kept")
	flag.Parse()
	if err := run(context.Background(), *store, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, store string, out io.Writer) (err error) {
	node, err := futura.Open(ctx, store,
		futura.Function(syncAccount.Bind(func(_ context.Context, id string) (string, error) { return "synced " + id, nil })),
		futura.Function(index.Bind(func(_ context.Context, p Page) (string, error) {
			return fmt.Sprintf("indexed %s, version %d", p.URL, p.Version), nil
		})),
		futura.Function(report.Bind(func(_ context.Context, day string) (string, error) { return "report of " + day, nil })),
		futura.Function(welcome.Bind(func(_ context.Context, to string) (string, error) { return "welcome, " + to, nil })))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	for _, part := range []func(context.Context, *futures.Client, io.Writer) error{
		syncOnce, indexLast, reportNightly, welcomeOnce,
	} {
		if err := part(ctx, node.Client, out); err != nil {
			return err
		}
	}
	return nil
}

// syncOnce has many events ask for the same work: while it is pending, all of them get
// the same future.
func syncOnce(ctx context.Context, client *futures.Client, out io.Writer) error {
	once := futures.WithUnique(futures.Unique{OnConflict: futures.ConflictReturn})
	first, err := syncAccount.Submit(ctx, client, "ada", once, futures.Delay(time.Second))
	if err != nil {
		return err
	}
	second, err := syncAccount.Submit(ctx, client, "ada", once)
	if err != nil {
		return err
	}
	text, err := second.Await(ctx)
	fmt.Fprintln(out, text, first.ID() == second.ID(), second.Existed())
	return err
}

// indexLast has a new version of a page replace one that still waits. One that a worker
// has begun is not replaced: with UntilClaim the new one then waits beside it.
func indexLast(ctx context.Context, client *futures.Client, out io.Writer) error {
	var last *futures.Typed[string]
	for version := 1; version <= 3; version++ {
		page := Page{URL: "/tea", Version: version}
		var err error
		last, err = index.Submit(ctx, client, page, futures.Delay(time.Second), futures.WithUnique(futures.Unique{
			Key: page.URL, By: []futures.UniquePart{futures.UniqueFunction},
			Until: futures.UntilClaim, OnConflict: futures.ConflictReplace,
		}))
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "version", version, "replaces one:", !last.Replaced().IsZero())
	}
	text, err := last.Await(ctx)
	fmt.Fprintln(out, text)
	return err
}

// reportNightly makes one report in any 20 hours, however many schedulers ask for it,
// and none beside one that takes longer than that.
func reportNightly(ctx context.Context, client *futures.Client, out io.Writer) error {
	nightly := futures.WithUnique(futures.Unique{Key: "nightly-report", For: 20 * time.Hour})
	text, err := report.Call(ctx, client, "Monday", nightly)
	if err != nil {
		return err
	}
	_, err = report.Call(ctx, client, "Tuesday", nightly)
	var other *futures.NotUniqueError
	if errors.As(err, &other) {
		fmt.Fprintf(out, "%s; the next one is refused: other %s, %v, for %v\n", text, other.Differs, other.State,
			time.Until(other.FreeAt).Round(time.Hour))
		return nil
	}
	return err
}

// welcomeOnce sends a mail to an address once and for all, even if the future that sent
// it was removed long ago.
func welcomeOnce(ctx context.Context, client *futures.Client, out io.Writer) error {
	for range 2 {
		text, err := welcome.Call(ctx, client, "grace@example.com",
			futures.WithUnique(futures.Unique{Key: "welcome grace@example.com", Until: futures.UntilEver}))
		switch {
		case errors.Is(err, futures.ErrNotUnique):
			fmt.Fprintln(out, "she had her welcome")
		case err != nil:
			return err
		default:
			fmt.Fprintln(out, text)
		}
	}
	return nil
}
