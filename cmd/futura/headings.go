package main

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Headings of the flags of commands that have many, and the annotation of a flag that has one.
const (
	byHeading   = "heading"
	ofWorker    = "Worker"
	ofFunctions = "Function"
	ofObjects   = "Object"
	ofHeads     = "Head"
	ofMetrics   = "Metrics"
	ofHTTP      = "HTTP"
	ofBatches   = "Batch"
	ofPeers     = "Peer"
	ofOthers    = "Other"
)

// under puts the flags that have no heading yet under one.
func under(flags *pflag.FlagSet, heading string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Annotations[byHeading] == nil {
			_ = flags.SetAnnotation(f.Name, byHeading, []string{heading}) // the flag is there
		}
	})
}

// listByHeading has the help of a command list its flags under their headings, if they have some.
func listByHeading(cmd *cobra.Command) {
	lists := map[string]*pflag.FlagSet{}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		heading := cmp.Or(strings.Join(f.Annotations[byHeading], ""), ofOthers)
		if lists[heading] == nil {
			lists[heading] = pflag.NewFlagSet(heading, pflag.ContinueOnError)
		}
		lists[heading].AddFlag(f)
	})
	if len(lists) < 2 {
		return
	}
	var text []string
	for _, heading := range []string{
		ofWorker, ofFunctions, ofObjects, ofHeads, ofMetrics, ofHTTP, ofBatches, ofPeers, ofOthers,
	} {
		if list := lists[heading]; list != nil {
			text = append(text, heading+" Flags:\n"+strings.TrimRight(list.FlagUsagesWrapped(80), "\n"))
		}
	}
	cmd.SetUsageTemplate(strings.Replace(cmd.UsageTemplate(),
		"Flags:\n{{.LocalFlags.FlagUsagesWrapped 80 | trimTrailingWhitespaces}}",
		"{{"+strconv.Quote(strings.Join(text, "\n\n"))+"}}", 1))
}
