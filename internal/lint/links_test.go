package lint

import (
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
	for name, allowed := range map[string][]string{
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
	} {
		if !slices.ContainsFunc(readGo(t), func(file goFile) bool { return file.dir() == name && !file.isTest() }) {
			continue
		}
		for _, linked := range linkedModulePackages(t, name) {
			for _, module := range heavy {
				if matches(module+"/...", linked) && !matchesAny(withBelow(allowed), linked) {
					t.Errorf("a program that imports %s links %s", name, linked)
				}
			}
		}
	}
}

// linkedModulePackages returns all packages outside of the standard library
// that name needs, with the tag fdb set.
func linkedModulePackages(t *testing.T, name string) []string {
	command := exec.Command("go", "list", "-e", "-deps", "-tags", "fdb",
		"-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./"+name)
	command.Dir = moduleRoot(t)
	output, err := command.Output()
	require.NoError(t, err)
	packages := strings.Fields(string(output))
	require.Contains(t, packages, modulePath+"/"+name)
	return packages
}
