package lint

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// imports is what a package may import beside the standard library: packages
// of this module, and modules of others. A name that ends with /... stands for
// a package and all below it.
type imports struct {
	ours   []string
	others []string
}

// Modules of others.
const (
	blake3      = "github.com/zeebo/blake3"
	bubbletea   = "charm.land/bubbletea/v2"
	bindings    = "github.com/apple/foundationdb/bindings/go"
	btree       = "github.com/tidwall/btree"
	crontab     = "github.com/robfig/cron/v3"
	contentID   = "github.com/ipfs/go-cid"
	cobra       = "github.com/spf13/cobra"
	ansi        = "github.com/charmbracelet/x/ansi"
	goleak      = "go.uber.org/goleak"
	huma        = "github.com/danielgtaylor/huma/v2"
	koanf       = "github.com/knadh/koanf"
	libp2p      = "github.com/libp2p"
	lipgloss    = "charm.land/lipgloss/v2"
	multiformat = "github.com/multiformats"
	mongo       = "go.mongodb.org/mongo-driver/v2"
	msgp        = "github.com/tinylib/msgp"
	msgpack     = "github.com/vmihailenco/msgpack/v5"
	network     = "golang.org/x/net"
	openTele    = "go.opentelemetry.io/otel"
	otlp        = "go.opentelemetry.io/proto/otlp"
	pebble      = "github.com/cockroachdb/pebble/v2"
	pflag       = "github.com/spf13/pflag"
	progressbar = "github.com/schollz/progressbar/v3"
	gonum       = "gonum.org/v1/plot"
	protobuf    = "google.golang.org/protobuf"
	prometheus  = "github.com/prometheus"
	yaml        = "go.yaml.in/yaml/v3"
	rapid       = "pgregory.net/rapid"
	system      = "golang.org/x/sys"
	terminal    = "golang.org/x/term"
	testify     = "github.com/stretchr/testify"
	uuid        = "github.com/google/uuid"
	wazero      = "github.com/tetratelabs/wazero"
	xrate       = "golang.org/x/time"
	lru         = "github.com/hashicorp/golang-lru/v2"
	xsync       = "golang.org/x/sync"
)

// telemetryAPI is OpenTelemetry's API: what others may be instrumented with, without its SDK.
func telemetryAPI() []string {
	return []string{openTele + "/attribute", openTele + "/codes", openTele + "/propagation", openTele + "/semconv",
		openTele + "/trace"}
}

// root is the package at the module's root.
const root = "."

// everyone lists what every package except the two at the bottom may import.
func everyone() []string { return []string{"internal/clock", "internal/signal"} }

// importTable is the one table of allowed imports. Arrows point one way: kv and tuple, layout,
// read, fdbmodel, its rooms, futures and workers side by side, batch and protocol, cmd. A package
// that is not in it fails the test.
func importTable() map[string]imports {
	store := []string{"fdbmodel/kv", "fdbmodel/tuple"}
	model := append(slices.Clone(store), "fdbmodel/layout", "fdbmodel")
	application := append(slices.Clone(model), "fdbmodel/edges", "fdbmodel/inspect", "fdbmodel/mailbox",
		"fdbmodel/fit", "fdbmodel/modules",
		"fdbmodel/quota", "fdbmodel/results", "futures", "workers", "workers/...")
	whole := append(slices.Clone(application), "fdbmodel/admin", "fdbmodel/maintenance", "fdbmodel/names",
		"fdbmodel/pauses", "fdbmodel/lanes", "fdbmodel/audit", "fdbmodel/joblog", "fdbmodel/keyspace", "fdbmodel/promises",
		"fdbmodel/schedule",
		"fdbmodel/transfer", "fdbmodel/transfer/archive", "futures/httpapi", "futures/httpapi/stack", "fdbmodel/kv/faultkv",
		"fdbmodel/kv/embedded", "fdbmodel/kv/kvopen", "fdbmodel/kv/fdbkv", "fdbmodel/kv/remote", "fdbmodel/kv/sharing")
	return map[string]imports{
		"internal/away":        {ours: []string{"fdbmodel/kv"}},
		"internal/bubble":      {},
		"internal/budget":      {others: []string{xsync}},
		"internal/clock":       {},
		"internal/connlimit":   {},
		"internal/jsonpointer": {},
		"internal/lint":        {},
		"internal/mutants":     {},
		"internal/ratelog":     {},
		"internal/seam":        {ours: []string{"fdbmodel/kv"}},
		"internal/signal":      {},
		"internal/series":      {others: []string{prometheus}},
		"internal/socket":      {},
		"internal/taskcontext": {ours: []string{"fdbmodel", "fdbmodel/actors", "fdbmodel/kv", "fdbmodel/layout"}},
		"internal/telemetry":   {ours: []string{"internal/ratelog"}, others: []string{openTele, otlp, protobuf}},
		"internal/timetable":   {others: []string{crontab}},
		"internal/wording":     {},
		"internal/trust":       {},

		"fdbmodel/kv":         {},
		"fdbmodel/tuple":      {},
		"fdbmodel/kv/faultkv": {ours: store},
		"fdbmodel/kv/embedded": {
			ours: append(slices.Clone(store), "internal/trust"), others: []string{pebble, btree, system},
		},
		"fdbmodel/kv/fdbkv": {ours: store, others: []string{bindings}},
		"fdbmodel/kv/remote": {ours: append(slices.Clone(store), "internal/budget", "internal/connlimit", "internal/ratelog",
			"internal/socket")},
		"fdbmodel/kv/sharing": {ours: append(slices.Clone(store),
			"fdbmodel/kv/embedded", "fdbmodel/kv/remote", "internal/socket", "internal/trust")},
		"fdbmodel/kv/kvopen": {ours: append(slices.Clone(store),
			"fdbmodel/kv/embedded", "fdbmodel/kv/fdbkv", "fdbmodel/kv/remote", "fdbmodel/kv/sharing", "internal/socket",
			"internal/trust")},
		"fdbmodel/transfer/archive": {},
		"fdbmodel/layout": {ours: append(slices.Clone(store), "internal/jsonpointer"),
			others: []string{msgp, uuid}},
		"fdbmodel/read":              {ours: append(slices.Clone(store), "fdbmodel/layout")},
		"fdbmodel/state":             {ours: []string{"fdbmodel/layout"}},
		"fdbmodel/reference":         {ours: append(slices.Clone(store), "fdbmodel/layout"), others: []string{msgp}},
		"fdbmodel/internal/claim":    {ours: append(slices.Clone(store), "fdbmodel/layout")},
		"fdbmodel/internal/index":    {ours: append(slices.Clone(store), "fdbmodel/layout")},
		"fdbmodel/internal/meter":    {ours: append(slices.Clone(store), "fdbmodel/layout")},
		"fdbmodel/internal/pause":    {ours: append(slices.Clone(store), "fdbmodel/layout")},
		"fdbmodel/internal/notify":   {ours: append(slices.Clone(store), "fdbmodel/layout")},
		"fdbmodel/internal/pieces":   {ours: append(slices.Clone(store), "fdbmodel/layout")},
		"fdbmodel/internal/roles":    {ours: append(slices.Clone(store), "fdbmodel/layout")},
		"fdbmodel/internal/sessions": {ours: append(slices.Clone(store), "fdbmodel/layout")},
		"fdbmodel/internal/nearby":   {ours: append(slices.Clone(store), "fdbmodel/layout", "fdbmodel/read")},
		"fdbmodel/internal/unique":   {ours: append(slices.Clone(store), "fdbmodel/layout", "fdbmodel/read")},
		"fdbmodel/internal/shards":   {ours: slices.Clone(store)},
		"fdbmodel/internal/expect":   {ours: slices.Clone(store)},
		"fdbmodel/internal/listen":   {ours: slices.Clone(store)},
		"fdbmodel/internal/random":   {},
		"fdbmodel/internal/serial":   {ours: slices.Clone(store)},
		"fdbmodel/internal/module":   {ours: append(slices.Clone(store), "fdbmodel/layout")},
		"fdbmodel/internal/member":   {ours: append(slices.Clone(store), "fdbmodel/layout")},
		"fdbmodel/internal/avoid": {ours: append(slices.Clone(store), "fdbmodel/layout", "fdbmodel/internal/member",
			"fdbmodel/internal/nearby")},
		"fdbmodel/internal/edge": {ours: append(slices.Clone(store), "fdbmodel/layout", "fdbmodel/read", "fdbmodel/state",
			"fdbmodel/internal/index", "fdbmodel/internal/nearby", "fdbmodel/internal/shards")},
		"fdbmodel/internal/step": {ours: append(slices.Clone(store), "fdbmodel/layout", "fdbmodel/internal/index")},
		"fdbmodel/internal/fork": {ours: append(slices.Clone(store), "fdbmodel/layout", "fdbmodel/internal/index")},
		"fdbmodel/internal/lane": {ours: append(slices.Clone(store), "fdbmodel/layout", "fdbmodel/read",
			"fdbmodel/internal/index")},
		"fdbmodel": {ours: append(slices.Clone(store), "fdbmodel/layout", "fdbmodel/read", "fdbmodel/state",
			"fdbmodel/internal/...")},
		"fdbmodel/edges": {ours: append(slices.Clone(model), "fdbmodel/internal/edge", "fdbmodel/internal/pieces")},
		"fdbmodel/audit": {ours: append(slices.Clone(model), "fdbmodel/actors", "fdbmodel/internal/meter",
			"fdbmodel/internal/pause", "fdbmodel/joblog", "fdbmodel/keyspace", "fdbmodel/maintenance",
			"fdbmodel/promises", "fdbmodel/quota", "fdbmodel/read", "fdbmodel/schedule", "fdbmodel/internal/fork",
			"fdbmodel/internal/step")},
		"fdbmodel/batches": {ours: append(slices.Clone(model), "fdbmodel/owners")},
		"fdbmodel/circles": {ours: append(slices.Clone(model), "fdbmodel/actors", "fdbmodel/edges", "fdbmodel/lanes")},
		"fdbmodel/admin":   {ours: append(slices.Clone(model), "fdbmodel/internal/sessions", "fdbmodel/maintenance")},
		"fdbmodel/fit":     {ours: append(slices.Clone(model), "fdbmodel/pauses", "fdbmodel/read", "fdbmodel/state")},
		"fdbmodel/owners":  {ours: slices.Clone(model)},
		"fdbmodel/joblog":  {ours: slices.Clone(model)},
		"fdbmodel/mailbox": {ours: append(slices.Clone(model), "fdbmodel/read", "fdbmodel/internal/index",
			"fdbmodel/internal/sessions")},
		"fdbmodel/maintenance": {ours: append(slices.Clone(model), "fdbmodel/read", "fdbmodel/state",
			"fdbmodel/internal/pause", "fdbmodel/internal/pieces", "fdbmodel/internal/step",
			"fdbmodel/internal/roles", "fdbmodel/internal/sessions", "fdbmodel/internal/shards", "internal/clock")},
		"fdbmodel/metering": {ours: append(slices.Clone(model), "fdbmodel/internal/meter")},
		"fdbmodel/activity": {ours: append(slices.Clone(model), "fdbmodel/internal/meter")},
		"fdbmodel/lanes": {ours: append(slices.Clone(model), "fdbmodel/read", "fdbmodel/internal/lane",
			"fdbmodel/internal/shards")},
		"fdbmodel/pauses": {ours: append(slices.Clone(model), "fdbmodel/internal/pause")},
		"fdbmodel/names": {ours: append(slices.Clone(model), "fdbmodel/internal/index", "fdbmodel/internal/shards",
			"fdbmodel/internal/unique")},
		"fdbmodel/modules": {ours: append(slices.Clone(model), "fdbmodel/internal/module", "fdbmodel/internal/pieces"),
			others: []string{contentID}},
		"fdbmodel/actors": {ours: slices.Clone(model), others: []string{lru}},
		"fdbmodel/promises": {ours: append(slices.Clone(model), "fdbmodel/read", "fdbmodel/state",
			"fdbmodel/internal/pieces")},
		"fdbmodel/quota": {ours: slices.Clone(model)},
		"fdbmodel/results": {ours: append(slices.Clone(model), "fdbmodel/read", "fdbmodel/state", "fdbmodel/internal/index",
			"fdbmodel/internal/nearby", "fdbmodel/internal/pieces")},
		"fdbmodel/steps": {ours: append(slices.Clone(model), "fdbmodel/read", "fdbmodel/state", "fdbmodel/internal/pieces",
			"fdbmodel/internal/step")},
		"fdbmodel/forks": {ours: append(slices.Clone(model), "fdbmodel/read", "fdbmodel/steps", "fdbmodel/internal/fork",
			"fdbmodel/internal/pieces", "fdbmodel/internal/step")},
		"fdbmodel/schedule": {ours: append(slices.Clone(model), "fdbmodel/read", "internal/timetable")},
		"fdbmodel/inspect": {
			ours: append(slices.Clone(model), "fdbmodel/actors", "fdbmodel/circles", "fdbmodel/edges", "fdbmodel/fit",
				"fdbmodel/keyspace",
				"fdbmodel/internal/fork", "fdbmodel/internal/step", "fdbmodel/lanes", "fdbmodel/pauses",
				"fdbmodel/promises", "fdbmodel/quota", "fdbmodel/read", "fdbmodel/reference", "fdbmodel/results",
				"fdbmodel/steps"),
			others: []string{msgp},
		},
		"fdbmodel/keyspace": {ours: append(slices.Clone(model), "fdbmodel/actors", "fdbmodel/joblog", "fdbmodel/promises",
			"fdbmodel/quota", "fdbmodel/schedule")},
		"fdbmodel/transfer": {ours: append(slices.Clone(model), "fdbmodel/admin", "fdbmodel/audit", "fdbmodel/joblog",
			"fdbmodel/keyspace",
			"fdbmodel/transfer/archive")},

		root: {ours: append(slices.Clone(application), "fdbmodel/admin", "fdbmodel/kv/kvopen")},

		"futures": {
			ours: append(slices.Clone(model), "fdbmodel/actors", "fdbmodel/circles", "fdbmodel/fit", "fdbmodel/names",
				"fdbmodel/pauses", "fdbmodel/lanes", "fdbmodel/forks",
				"fdbmodel/inspect", "fdbmodel/mailbox", "fdbmodel/quota",
				"fdbmodel/activity", "fdbmodel/reference", "fdbmodel/metering", "fdbmodel/promises", "fdbmodel/results",
				"fdbmodel/schedule", "fdbmodel/steps", "internal/seam",
				"internal/away", "internal/clock", "internal/jsonpointer", "internal/taskcontext", "workers/objects/held",
				"workers/objects/hints"),
			others: []string{msgpack, uuid},
		},
		"futures/httpapi": {
			ours: append(slices.Clone(model),
				"fdbmodel/activity", "fdbmodel/maintenance", "fdbmodel/names",
				"fdbmodel/edges", "fdbmodel/inspect", "fdbmodel/joblog",
				"fdbmodel/metering", "fdbmodel/modules", "fdbmodel/quota",
				"fdbmodel/results", "futures",
				"futures/httpapi/stack", "internal/wording"),
			others: []string{huma, prometheus, xsync},
		},
		"futures/dashboard":                      {ours: []string{"futures/httpapi/stack"}},
		"futures/dashboard/internal/browsertest": {},
		"futures/tracing": {
			ours: []string{"fdbmodel/layout", "futures", "workers"}, others: telemetryAPI(),
		},
		"futures/httpapi/stack": {
			ours:   []string{"internal/budget", "internal/connlimit", "internal/trust"},
			others: []string{huma, uuid, prometheus, xrate},
		},
		"workers": {
			ours: append(slices.Clone(model), "fdbmodel/actors", "fdbmodel/circles",
				"fdbmodel/fit", "fdbmodel/maintenance", "fdbmodel/names", "fdbmodel/edges", "fdbmodel/lanes",
				"fdbmodel/mailbox", "fdbmodel/modules", "fdbmodel/quota",
				"fdbmodel/activity", "fdbmodel/reference", "fdbmodel/metering", "fdbmodel/results",
				"fdbmodel/schedule", "fdbmodel/steps", "internal/seam",
				"workers/objects", "workers/objects/held", "workers/objects/hints", "workers/objects/peer",
				"internal/away", "internal/ratelog", "internal/series", "internal/socket", "internal/taskcontext"),
			others: []string{msgpack, uuid, prometheus, system},
		},
		"workers/wasm": {
			ours:   []string{"fdbmodel", "fdbmodel/layout", "workers", "internal/trust"},
			others: []string{wazero, system, network},
		},

		"workers/objects": {ours: []string{"internal/trust"}, others: []string{blake3, system}},
		"workers/objects/held": {ours: append(slices.Clone(model), "fdbmodel/results", "workers/objects",
			"workers/objects/peer")},
		"workers/objects/hints": {ours: append(slices.Clone(model), "workers/objects/peer")},
		"workers/objects/peer": {
			ours:   []string{"internal/connlimit", "internal/socket", "internal/trust", "workers/objects"},
			others: []string{system},
		},

		"workers/wasm/wasmbench": {ours: []string{"workers/wasm"}, others: []string{wazero}},

		"batch":          {},
		"batch/memstore": {ours: []string{"batch"}},
		"batch/grouping": {ours: []string{"futures", "internal/clock", "workers"}},
		"batch/jobqueue": {
			ours: append(slices.Clone(model), "fdbmodel/joblog", "fdbmodel/quota"), others: []string{prometheus},
		},
		"batch/mongostore": {ours: []string{"batch"}, others: []string{mongo}},
		"batch/futurestore": {
			ours:   append(slices.Clone(application), "batch", "fdbmodel/batches", "fdbmodel/owners"),
			others: []string{uuid, msgpack},
		},
		"batch/head": {
			ours:   append(slices.Clone(application), "batch", "batch/futurestore", "fdbmodel/owners", "internal/seam"),
			others: []string{uuid, prometheus},
		},
		"batch/source": {ours: []string{"fdbmodel", "fdbmodel/modules"}},
		"batch/rest": {
			ours: append(slices.Clone(application), "batch", "batch/futurestore", "batch/head", "batch/source",
				"fdbmodel/pauses", "futures/httpapi", "futures/httpapi/stack"),
			others: []string{huma, uuid, prometheus},
		},
		"protocol": {ours: []string{"batch"}},

		// Modules of their own.
		"batch/mongostore/internal/ferrettest": {},
		"internal/collectortest":               {},
		"internal/interop/b7s":                 {},

		"protocol/p2p": {
			ours: []string{"internal/budget", "internal/connlimit", "internal/ratelog", "internal/series", "internal/trust",
				"protocol"},
			others: []string{libp2p, multiformat, contentID, xrate, prometheus},
		},

		"protocol/peerhead": {
			ours: append(slices.Clone(whole), "batch", "internal/budget", "internal/ratelog", "internal/series", "protocol",
				"protocol/p2p"),
			others: []string{uuid, xrate, xsync, prometheus},
		},
		"protocol/peerworker": {
			ours: append(slices.Clone(model), "fdbmodel/kv/kvopen", "fdbmodel/modules", "workers", "batch",
				"batch/futurestore", "batch/source",
				"protocol", "protocol/p2p", "internal/ratelog", "internal/seam", "internal/series",
				"internal/taskcontext"),
			others: []string{prometheus, uuid},
		},

		"batch/batchtest": {ours: []string{"batch"}, others: append(tests(), uuid)},

		"internal/bench": {
			ours:   append(slices.Clone(whole), "internal/...", "batch", "batch/head", "batch/futurestore", "protocol/..."),
			others: []string{uuid, prometheus},
		},
		"internal/bench/page": {
			ours: []string{"internal/bench", "internal/console", "internal/wording"}, others: []string{gonum},
		},
		"internal/demo": {
			ours:   append(slices.Clone(whole), "internal/...", "examples/..."),
			others: []string{uuid, msgpack, xsync},
		},
		"internal/console": {others: []string{progressbar, terminal}},
		"internal/system":  {},
		"internal/top": {
			ours: append(slices.Clone(model), "fdbmodel/inspect", "futures", "futures/httpapi", "internal/console",
				"internal/wording"),
			others: []string{ansi, bubbletea, lipgloss, xsync},
		},
		"cmd/futura-bench": {
			ours: []string{"fdbmodel/kv/kvopen", "internal/bench", "internal/bench/page", "internal/console", "internal/demo",
				"internal/fdbtest", "internal/wording", "workers/wasm"},
			others: []string{cobra, progressbar},
		},
		"cmd/futura": {
			ours: append(slices.Clone(whole), "batch", "batch/...", "futures/dashboard", "futures/tracing",
				"internal/connlimit", "internal/console", "internal/series", "internal/socket", "internal/telemetry",
				"internal/top", "internal/trust", "internal/wording", "protocol", "protocol/..."),
			others: []string{cobra, koanf, pflag, progressbar, prometheus, uuid, yaml},
		},
		"examples/...": {
			ours:   append(slices.Clone(whole), root, "examples/...", "batch/grouping", "batch/jobqueue", "protocol/..."),
			others: []string{uuid, xsync},
		},

		"fdbmodel/kv/kvtest": {
			ours:   append(slices.Clone(store), "fdbmodel/kv/kvtest/reference", "fdbmodel/kv/faultkv", "internal/anomaly"),
			others: tests(),
		},
		"fdbmodel/kv/kvtest/reference": {ours: store},
		"fdbmodel/modeltest": {
			ours: append(slices.Clone(model),
				"fdbmodel/fit", "fdbmodel/maintenance", "fdbmodel/names", "fdbmodel/owners",
				"fdbmodel/pauses", "fdbmodel/lanes",
				"fdbmodel/audit", "fdbmodel/batches", "fdbmodel/inspect",
				"fdbmodel/activity", "fdbmodel/internal/...", "fdbmodel/joblog", "fdbmodel/mailbox", "fdbmodel/metering",
				"fdbmodel/actors", "fdbmodel/forks", "fdbmodel/modules", "fdbmodel/promises", "fdbmodel/quota",
				"fdbmodel/results", "fdbmodel/schedule", "fdbmodel/steps",
				"fdbmodel/kv/faultkv", "fdbmodel/kv/embedded", "internal/storetest"),
			others: append(tests(), pebble),
		},
		"futures/httpapi/stack/stacktest": {ours: []string{"futures/httpapi/stack"}, others: tests()},
		"futures/futurestest":             {ours: append(slices.Clone(whole), "internal/..."), others: append(tests(), uuid)},
		"internal/fdbtest": {
			ours:   append(slices.Clone(store), "fdbmodel/kv/fdbkv"),
			others: append(tests(), bindings),
		},
		"internal/anomaly":   {},
		"internal/bank":      {},
		"internal/careless":  {},
		"internal/chaos":     {},
		"internal/faultdisk": {others: []string{pebble}},
		"internal/attack": {
			ours:   append(slices.Clone(store), "fdbmodel/kv/kvopen", "futures", "protocol", "protocol/p2p"),
			others: []string{uuid},
		},
		"internal/storetest": {
			ours: append(slices.Clone(store), "fdbmodel/kv/embedded", "fdbmodel/kv/fdbkv", "fdbmodel/kv/remote",
				"internal/fdbtest"),
			others: append(tests(), pebble),
		},
		"internal/sim": {
			ours: append(slices.Clone(whole), "internal/seam", "internal/storetest", "internal/taskcontext",
				"fdbmodel/actors", "fdbmodel/forks", "fdbmodel/kv/kvtest/reference", "fdbmodel/promises", "fdbmodel/reference",
				"fdbmodel/batches", "fdbmodel/steps", "batch", "batch/head", "batch/futurestore"),
			others: append(tests(), uuid, pebble),
		},
	}
}

// tests are the modules that packages for tests may import, as any file of a
// test may.
func tests() []string { return []string{testify, rapid, goleak} }

// forTests are packages that only tests, and each other, may import.
func forTests() []string {
	return []string{"fdbmodel/kv/kvtest", "fdbmodel/kv/kvtest/reference", "fdbmodel/modeltest", "futures/futurestest",
		"futures/httpapi/stack/stacktest",
		"batch/batchtest",
		"internal/anomaly", "internal/bubble", "internal/faultdisk", "internal/fdbtest",
		"internal/storetest", "internal/sim", "internal/attack"}
}

func TestImportsFollowTheTable(t *testing.T) {
	t.Parallel()
	table := importTable()
	for _, file := range readGo(t) {
		for _, problem := range checkImports(table, file) {
			t.Error(problem)
		}
	}
}

func TestImportTableIsSound(t *testing.T) {
	t.Parallel()
	owners := map[string][]string{
		wazero: {"workers/wasm", "workers/wasm/wasmbench"}, bindings: {"fdbmodel/kv/fdbkv", "internal/fdbtest"},
		pebble: {"fdbmodel/kv/embedded", "fdbmodel/modeltest", "internal/faultdisk", "internal/sim", "internal/storetest"},
		blake3: {"workers/objects"},
		btree:  {"fdbmodel/kv/embedded"}, mongo: {"batch/mongostore"},
		huma:  {"batch/rest", "futures/httpapi", "futures/httpapi/stack"},
		cobra: {"cmd/futura", "cmd/futura-bench"}, koanf: {"cmd/futura"},
		progressbar: {"cmd/futura", "cmd/futura-bench", "internal/console"}, libp2p: {"protocol/p2p"},
		otlp: {"internal/telemetry"}, openTele: {"internal/telemetry"}, openTele + "/trace": {"futures/tracing"},
		gonum: {"internal/bench/page"}, bubbletea: {"internal/top"}, lipgloss: {"internal/top"},
	}
	for other, want := range owners {
		var got []string
		for name, allowed := range importTable() {
			if slices.Contains(allowed.others, other) {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		require.Equal(t, want, got, other)
	}
	for _, bottom := range []string{"fdbmodel/kv", "fdbmodel/tuple"} {
		require.Empty(t, importTable()[bottom].others)
		require.Empty(t, importTable()[bottom].ours)
	}
	require.NotContains(t, importTable()["futures"].ours, "workers")
	require.NotContains(t, importTable()["workers"].ours, "futures")
}
