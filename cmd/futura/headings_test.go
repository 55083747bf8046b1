package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

func TestHelpListsEachFlagOnceUnderItsHeading(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ command, headings string }{
		{"dev", "Worker Function Object HTTP Batch Peer Other Global"},
		{"serve", "HTTP Batch Peer Other Global"},
		{"head", "HTTP Batch Peer Other Global"},
		{"worker", "Worker Function Object Head Metrics Other Global"},
		{"submit", "Global"},
	} {
		var out bytes.Buffer
		root := (&app{}).root()
		root.SetOut(&out)
		root.SetArgs([]string{test.command, "--help"})
		require.NoError(t, root.Execute())
		headings := regexp.MustCompile(`(?m)^\w+ Flags:$`).FindAllString(out.String(), -1)
		require.Equal(t, test.headings, strings.ReplaceAll(strings.Join(headings, " "), " Flags:", ""))
		cmd, _, err := root.Find([]string{test.command})
		require.NoError(t, err)
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			require.Len(t, regexp.MustCompile(`(?m)^  (    |-\w, )--`+f.Name+`( |$)`).FindAllString(out.String(), -1), 1, f.Name)
		})
	}
}
