package lint

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestApplicationsLinkLittle checks what a program links that imports a
// package: not more than it asked for.
func TestApplicationsLinkLittle(t *testing.T) {
	t.Parallel()
	heavy := []string{wazero, libp2p, "github.com/quic-go", "github.com/pion", "go.uber.org/fx",
		bindings, pebble, huma, cobra, koanf, testify, rapid, "go.mongodb.org",
		openTele, "github.com/multiformats", "lukechampine.com/blake3", "golang.org/x/crypto", "github.com/spaolacci/murmur3"}
	allowed := map[string][]string{
		"fdbmodel/kv":          nil,
		"fdbmodel/tuple":       nil,
		"fdbmodel":             nil,
		"futures":              nil,
		"workers":              nil,
		"workers/wasm":         {wazero},
		"fdbmodel/kv/embedded": {pebble},
		"fdbmodel/kv/fdbkv":    {bindings},
		"fdbmodel/kv/remote":   nil,
		"futures/httpapi":      {huma},
		"futures/tracing":      append(telemetryAPI(), openTele+"/baggage", openTele+"/internal"),
		"protocol":             nil,
		"protocol/p2p": {libp2p, "github.com/multiformats", "golang.org/x/crypto", "lukechampine.com/blake3",
			"github.com/spaolacci/murmur3"},
	}
	for name, linked := range linkedPackages(t, slices.Sorted(maps.Keys(allowed))) {
		for _, of := range linked {
			for _, module := range heavy {
				if matches(module+"/...", of) && !matchesAny(withBelow(allowed[name]), of) {
					t.Errorf("a program that imports %s links %s", name, of)
				}
			}
		}
	}
}

// linkedPackages returns all packages that each of some needs, with the tag fdb set.
func linkedPackages(t *testing.T, names []string) map[string][]string {
	command := exec.Command("go", "list", "-e", "-tags", "fdb", "-f", "{{.ImportPath}} {{join .Deps \" \"}}")
	for _, name := range names {
		command.Args = append(command.Args, "./"+name)
	}
	command.Dir = moduleRoot(t)
	output, err := command.Output()
	require.NoError(t, err)
	linked := map[string][]string{}
	for line := range strings.Lines(string(output)) {
		packages := strings.Fields(line)
		name := strings.TrimPrefix(packages[0], modulePath+"/")
		require.Contains(t, names, name)
		require.NotEmpty(t, packages[1:], name)
		linked[name] = packages[1:]
	}
	require.Len(t, linked, len(names))
	return linked
}
