package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/futura-run/futura/internal/console"
)

// warnOfMisspelt names variables of the environment that are no settings and look as if they were to be. Others may
// have names that begin alike, such as those that Kubernetes makes for a service.
func warnOfMisspelt(cmd *cobra.Command, environ []string, settings map[string]*pflag.Flag) {
	known := []string{envName(configFlag), "FUTURA_REMOTE_TOKEN"}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		known = append(known, envName(key))
	}
	for _, variable := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(variable, "=")
		rest, is := strings.CutPrefix(name, "FUTURA_")
		if !is || value == "" || slices.Contains(known, name) {
			continue
		}
		meant := likeNames(rest, known)
		if whole := envName(section(cmd)) + "_" + rest; slices.Contains(known, whole) {
			meant = []string{whole}
		}
		if len(meant) > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "futura: %s in the environment is no setting, and is ignored: did you mean %s?\n",
				console.Printable(name), strings.Join(meant, " or "))
		}
	}
}

// likeNames are the settings that become another name by two letters left out, added or exchanged, by one if it is
// short, or by more letters at its end: none if those are many.
func likeNames(rest string, known []string) (names []string) {
	const shortest, most = 5, 3
	commands := &cobra.Command{SuggestionsMinimumDistance: 1}
	if len(rest) > shortest {
		commands.SuggestionsMinimumDistance = 2
	}
	for _, k := range known {
		commands.AddCommand(&cobra.Command{Use: strings.TrimPrefix(k, "FUTURA_"), Run: func(*cobra.Command, []string) {}})
	}
	like := commands.SuggestionsFor(rest)
	if len(like) > most {
		return nil
	}
	for _, name := range like {
		names = append(names, "FUTURA_"+name)
	}
	return names
}
