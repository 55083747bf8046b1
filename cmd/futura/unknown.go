package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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

// flagError says what a flag takes instead of its value.
func flagError(err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && startsNumber(unknown.GetSpecifiedShortnames()) {
		return fmt.Errorf("-%s is no flag: put -- before an argument that begins with a minus, behind all flags",
			unknown.GetSpecifiedShortnames())
	}
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	takes := ""
	switch flag := invalid.GetFlag(); flag.Value.Type() {
	case "uint8":
		takes = "a whole number from 0 to 255"
	case "int", "int64":
		takes = "a whole number"
	case "uint64":
		takes = "a whole number from 0"
	case "float64":
		takes = "a number"
	case "duration":
		takes = "a duration such as 90s, 5m or 2h, up to 2562047h"
	case "bool":
		takes = "true or false"
	default:
		return err
	}
	return fmt.Errorf("--%s %.80q: use %s", invalid.GetFlag().Name, invalid.GetValue(), takes)
}

func startsNumber(text string) bool {
	return text != "" && (text[0] == '.' || '0' <= text[0] && text[0] <= '9')
}
