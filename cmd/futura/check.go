package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/admin"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/console"
	"github.com/futura-run/futura/internal/wording"
)

// checkFlags are what check takes.
type checkFlags struct{ repair, dryRun, yes bool }

// checked is what check prints as JSON.
type checked struct {
	audit.Report
	Spread  admin.Spread   `json:"spread"`
	Repairs *audit.Repairs `json:"repairs,omitempty"`
}

func (a *app) checkCommand() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use: "check", Short: "Check every invariant of the cluster, and repair what follows from its records",
		Args: exactly(0),
		Long: "check reads the whole cluster and names each invariant that does not hold, with its keys. It then exits " +
			"with 1. It also warns if all shards are on the same few of many servers.\n\n--repair then changes the keys that " +
			"follow from records of futures and are missing, stray or wrong: it shows what it would do, asks, does it, " +
			"checks again and exits as check does. No future, argument or result is changed or removed. What does not " +
			"follow from the records it leaves, and says what you can do. Workers and clients may run meanwhile.",
		Example: "  futura check\n  futura check --json\n  futura check --repair --dry-run\n  futura check --repair --yes",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.validate(a, cmd.Flags()); err != nil {
				return err
			}
			return a.open(cmd.Context(), func(c *futures.Client) error { return a.check(cmd.Context(), c.Cluster(), f) })
		},
	}
	cmd.Flags().BoolVar(&f.repair, "repair", false, "repair what follows from the records, after a question")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "with --repair: show what it would do, and change nothing")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "with --repair: don't ask")
	return cmd
}

func (f *checkFlags) validate(a *app, flags *pflag.FlagSet) error {
	keys, _ := console.Interactive(a.in, a.err)
	switch {
	case !f.repair && (flags.Changed("dry-run") || flags.Changed("yes")):
		return usageError{errors.New("--dry-run and --yes go with --repair")}
	case f.dryRun && flags.Changed("yes"):
		return usageError{errors.New("--dry-run changes nothing: leave out --yes")}
	case f.repair && !f.dryRun && !f.yes && (keys == nil || a.json):
		return usageError{errors.New("--repair asks on a terminal: use --dry-run to see what it would do, then --yes")}
	}
	return nil
}

// maxRepairs is how often a check repairs what an earlier repair has brought to light.
const maxRepairs = 5

func (a *app) check(ctx context.Context, c *fdbmodel.Cluster, f checkFlags) error {
	options := audit.Options{Progress: console.Progress(a.err, "ranges")}
	all := audit.Repairs{Repaired: map[audit.Invariant]int64{}}
	report, err := audit.Check(ctx, c, options)
	for n := 0; err == nil && f.repair && report.Repairable() > 0 && n < maxRepairs; n++ {
		if err = a.printPlan(&report); err != nil || f.dryRun || !f.yes && !confirmed(a.in, a.err, "Repair them?") {
			break
		}
		var did audit.Repairs
		did, err = audit.Repair(ctx, c, report, options)
		for of, n := range did.Repaired {
			all.Repaired[of] += n
		}
		all.Gone, all.Unsettled = all.Gone+did.Gone, did.Unsettled
		if err == nil {
			err = a.printRepairs(&did)
		}
		if err == nil {
			report, err = audit.Check(ctx, c, options)
		}
		if len(did.Repaired) == 0 {
			break
		}
	}
	if err != nil {
		return err
	}
	return a.printChecked(ctx, c, &report, &all, f)
}

// confirmed asks a question whose answer defaults to no.
func confirmed(in io.Reader, out io.Writer, question string) bool {
	fmt.Fprintf(out, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(in).ReadString('\n')
	return slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer)))
}

func (a *app) printChecked(ctx context.Context, c *fdbmodel.Cluster, r *audit.Report, did *audit.Repairs, f checkFlags,
) error {
	spread, err := admin.SpreadOf(ctx, c)
	if err != nil {
		spread.Warning = err.Error() // what was checked counts all the same
	}
	if !f.repair || f.dryRun {
		did = nil
	}
	if a.json {
		err = a.printJSON(checked{*r, spread, did})
	} else {
		err = a.printCheck(r, &spread, f)
	}
	if err == nil && r.Broken > 0 {
		err = errBroken
	}
	return err
}

// errBroken is returned when an invariant does not hold.
var errBroken = errors.New("the cluster has problems")

// printPlan shows what a repair would do.
func (a *app) printPlan(r *audit.Report) error {
	if a.json {
		return nil
	}
	_, err := io.WriteString(a.out, planText(r, console.Width(a.out)))
	return err
}

func planText(r *audit.Report, width int) string {
	rows := [][]string{{"PROBLEM", "COUNT", "REPAIR", "FOR EXAMPLE"}}
	for _, kind := range r.Kinds {
		if p := kind.Repaired; p != nil {
			rows = append(rows, []string{string(kind.Invariant), fmt.Sprint(kind.Repairable), p.Repair, p.Text})
		}
	}
	return fmt.Sprintf("%s can be repaired, as the right answer follows from the records:\n\n%s\n",
		wording.Count(r.Repairable(), "problem"), console.Lines(rows, width))
}

func (a *app) printRepairs(did *audit.Repairs) error {
	if a.json {
		return nil
	}
	for _, what := range did.Unsettled {
		fmt.Fprintf(a.err, "left as they are: %s\n", what)
	}
	for _, of := range slices.Sorted(maps.Keys(did.Repaired)) {
		fmt.Fprintf(a.out, "%s: %d repaired\n", of, did.Repaired[of])
	}
	if did.Gone == 0 {
		return nil
	}
	_, err := fmt.Fprintf(a.out, "no longer there: %d\n", did.Gone)
	return err
}

func (a *app) printCheck(r *audit.Report, s *admin.Spread, f checkFlags) error {
	if s.Warning != "" {
		fmt.Fprintf(a.err, "warning: %s; see docs/operating/foundationdb.md\n", s.Warning)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(a.out, "%s: %s\n", p.Invariant, p.Text)
		for _, key := range p.Keys {
			fmt.Fprintf(a.out, "    %s\n", key)
		}
		if f.repair && p.Instead != "" {
			fmt.Fprintf(a.out, "    not repaired: %s\n", p.Instead)
		}
	}
	for _, note := range r.Notes {
		if note.Invariant == audit.InvariantNewer {
			fmt.Fprintf(a.out, "%s: %s\n", note.Invariant, note.Text)
		}
	}
	if n := r.Repairable(); n > 0 && !f.repair {
		fmt.Fprintf(a.err, "%d can be repaired: futura check --repair\n", n)
	}
	_, err := fmt.Fprintf(a.out, "%s, %s, %s, %s for a janitor to remove, %s of a newer version\n",
		wording.Count(r.Futures, "future"), wording.Count(r.Keys, "key"), wording.Count(r.Broken, "problem"),
		wording.Count(r.Pending, "leftover"), wording.Count(r.Newer, "record"))
	return err
}
