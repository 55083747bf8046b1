package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// needsCommand makes a command that only has others print its help, and take a
// name that none of them has for a mistake.
func needsCommand(cmd *cobra.Command) *cobra.Command {
	cmd.SuggestionsMinimumDistance = 2
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		text := fmt.Sprintf("unknown command %.80q for %q", args[0], cmd.CommandPath())
		if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
			text += ", did you mean " + strings.Join(like, " or ") + "?"
		}
		return usageError{fmt.Errorf("%s (%s --help lists all)", text, cmd.CommandPath())}
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}
