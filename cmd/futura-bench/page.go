package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/internal/bench"
	"github.com/futura-run/futura/internal/bench/page"
)

// pageFlags are what page takes.
type pageFlags struct {
	dir    string
	only   []string
	shared bool
	better bool
	quick  bool
}

func (a *app) pageCommand() *cobra.Command {
	var f pageFlags
	cmd := &cobra.Command{
		Use:   "page",
		Short: "Measure all scenarios on each kind of store, and write performance.md of docs/reference",
		Long: "page runs the scenarios on an embedded store, on one that another process owns and serves at its Unix " +
			"socket, and on a FoundationDB server that it starts, in a build with the tag fdb where fdbserver is installed. " +
			"It writes performance.json, performance.md and its plots. With --only it measures some, and keeps the others " +
			"that performance.json has.",
		Example: "  futura-bench page\n  futura-bench page --only load,workers/fdb --shared",
		Args:    exactly(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.page(cmd.Context(), f) },
	}
	cmd.Flags().StringVar(&f.dir, "dir", "docs/reference", "where the page and its files are")
	cmd.Flags().StringSliceVar(&f.only, "only", nil,
		"measure only these: SCENARIO, or SCENARIO/STORE with embedded, remote or fdb")
	cmd.Flags().BoolVar(&f.shared, "shared", false, "say on the page that the machine did other work meanwhile")
	cmd.Flags().BoolVar(&f.better, "better", false,
		"with --only: keep what performance.json has where its latency is lower, or its rate higher")
	cmd.Flags().BoolVar(&f.quick, "quick", false, "with a hundredth of the futures, to try it")
	return cmd
}

// planned is a scenario on a kind of store.
type planned struct {
	scenario, kind string
	futures        int // 0 for the scenario's own number
}

// plan is what the page has. Scenarios that use no store, or two processes, are measured in process alone. Numbers
// are such that none takes much longer than half a minute.
func plan() (all []planned) {
	numbers := map[string][3]int{ // in the order of page.Kinds; -1 where it is not measured
		"burndown": {100_000, 100_000, 20_000}, "stream": {50_000, 50_000, 10_000}, "latency": {2000, 2000, 500},
		"await": {50_000, 50_000, 10_000}, "batch": {0, 0, 5000}, "graph": {20_000, 20_000, 2000},
		"lanes": {0, 0, 2000}, "processes": {0, 0, 5000}, "contention": {0, -1, -1}, "idle": {0, -1, -1}, "wasm": {0, -1, -1},
		"objects": {0, -1, -1}, "hints": {0, -1, -1}, "peers": {0, -1, -1},
		"load": {20_000, 20_000, 5000}, "workers": {10_000, 10_000, 5000}, "pending": {1_000_000, 100_000, 100_000},
		"history": {1_000_000, -1, -1}, "steps": {10_000, -1, -1}, "actors": {0, -1, 2000}, "pressure": {0, 100_000, 20_000},
	}
	for i, kind := range page.Kinds() {
		for _, scenario := range bench.Scenarios() {
			if n, ok := numbers[scenario]; ok && n[i] >= 0 {
				all = append(all, planned{scenario, kind, n[i]})
			}
		}
	}
	return all
}

// chosen is the part of the plan that only names.
func chosen(only []string) ([]planned, error) {
	all := plan()
	if len(only) == 0 {
		return all, nil
	}
	var some []planned
	for _, text := range only {
		before := len(some)
		for _, p := range all {
			if text == p.scenario || text == p.scenario+"/"+p.kind {
				some = append(some, p)
			}
		}
		if len(some) == before {
			return nil, usageError{fmt.Errorf("--only %.50q: the page has no such scenario: use SCENARIO or SCENARIO/STORE, of "+
				"%s and %s", text, strings.Join(bench.Scenarios(), ", "), strings.Join(page.Kinds(), ", "))}
		}
	}
	return some, nil
}

func (a *app) page(ctx context.Context, f pageFlags) error {
	some, err := chosen(f.only)
	if err != nil {
		return err
	}
	d, err := earlier(filepath.Join(f.dir, "performance.json"))
	if err != nil {
		return err
	}
	if len(f.only) == 0 {
		d.Reports = nil
	}
	before := d.Machine.FoundationDB
	if d.Machine, err = machine(); err != nil {
		return err
	}
	d.Machine.FoundationDB, d.Machine.Shared = before, f.shared
	put := d.Put
	if f.better {
		put = d.PutBetter
	}
	for _, p := range some {
		if f.quick {
			p.futures = max(p.futures/100, 100)
		}
		report, version, err := a.measure(ctx, p)
		if errors.Is(err, errNoFDB) {
			fmt.Fprintf(a.err, "%s on FoundationDB is left out: %v\n", p.scenario, err)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s, %s: %w", p.scenario, p.kind, err)
		}
		if version != "" {
			d.Machine.FoundationDB = version
		}
		report.Store = p.kind
		put(*report)
	}
	files, err := d.Files()
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := os.WriteFile(filepath.Join(f.dir, file.Name), file.Content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// earlier is what was measured before, nothing if there is no such file.
func earlier(path string) (page.Document, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return page.Document{}, nil
	}
	if err != nil {
		return page.Document{}, err
	}
	defer file.Close()
	d, err := page.Read(file)
	if err != nil {
		return d, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// errNoFDB is returned where FoundationDB can't be measured.
var errNoFDB = errors.New("no FoundationDB")

// measure measures one scenario on a fresh store. version is that of FoundationDB, where that is the store.
func (a *app) measure(ctx context.Context, p planned) (report *bench.Report, version string, err error) {
	runtime.GC()
	o := bench.Options{Futures: p.futures}
	b := &app{out: a.out, err: a.err}
	stop := func() error { return nil }
	switch p.kind {
	case page.Remote:
		dir, failed := os.MkdirTemp(".", ".futura-bench-")
		if failed != nil {
			return nil, "", failed
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		if dir, err = filepath.Abs(dir); err == nil {
			b.store, stop, err = bench.StartOwner(ctx, dir)
		}
	case page.FoundationDB:
		b.store, version, stop, err = startFDB(ctx)
	}
	if err != nil {
		return nil, "", err
	}
	report, err = b.bench(ctx, p.scenario, o, "")
	return report, version, errors.Join(err, stop())
}

// machine describes where this runs.
func machine() (page.Machine, error) {
	m := page.Machine{
		CPU: field("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(), Disk: disk(), Go: runtime.Version(),
		System: runtime.GOOS + "/" + runtime.GOARCH, Commit: version, Day: time.Now().Format(time.DateOnly),
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.System += ", kernel " + strings.TrimSpace(string(release))
	}
	var kib int64
	if _, err := fmt.Sscan(field("/proc/meminfo", "MemTotal"), &kib); err == nil {
		m.MemoryBytes = kib << 10
	}
	if m.CPU == "" {
		m.CPU = "of an unknown model"
	}
	if info, ok := debug.ReadBuildInfo(); ok && version == "dev" {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				m.Commit = s.Value[:min(12, len(s.Value))]
			}
		}
	}
	return m, nil
}

// field is the value of the first line of a file that has this name before a colon, empty if there is none.
func field(path, name string) string {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// disk is the file system of the working directory, and the device that it is on.
func disk() string {
	here, err := os.Getwd()
	text, failed := os.ReadFile("/proc/self/mounts")
	if errors.Join(err, failed) != nil {
		return "unknown"
	}
	best, kind := "", "unknown"
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 3 || len(words[1]) < len(best) {
			continue
		}
		if rest, ok := strings.CutPrefix(here, words[1]); ok && (rest == "" || words[1] == "/" || rest[0] == '/') {
			best, kind = words[1], words[2]+" on "+words[0]
		}
	}
	return kind
}
