//go:build fdb

package fdbkv

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClusterFileMistakes(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"":                                   "it has 0 lines",
		"# a comment\n":                      "it has 0 lines",
		"a:b@1.2.3.4:1\na:b@1.2.3.4:1\n":     "it has 2 lines",
		"not a cluster file":                 "no DESCRIPTION:ID@",
		"a@1.2.3.4:4500":                     "no DESCRIPTION:ID@",
		"a-b:c@1.2.3.4:4500":                 `description "a-b"`,
		"a:c_d@1.2.3.4:4500":                 `id "c_d"`,
		":c@1.2.3.4:4500":                    `description ""`,
		"a:@1.2.3.4:4500":                    `id ""`,
		"a:b@":                               `coordinator ""`,
		"a:b@1.2.3.4":                        `coordinator "1.2.3.4"`,
		"a:b@1.2.3.4:port":                   `coordinator "1.2.3.4:port"`,
		"a:b@1.2.3.4:0":                      `coordinator "1.2.3.4:0"`,
		"a:b@1.2.3.4:70000":                  `coordinator "1.2.3.4:70000"`,
		"a:b@1.2.3.4:4500,":                  `coordinator ""`,
		"a:b@:4500":                          `coordinator ":4500"`,
		"a:b@::1:4500":                       `coordinator "::1:4500"`,
		"a:b@1.2.3.4:4500":                   "",
		"a_1:B2@1.2.3.4:4500:tls\n":          "",
		"a:b@[::1]:4500,1.2.3.4:4501:tls":    "",
		"a:b@one.example:4500, 1.2.3.4:1\n":  "",
		"# why\n\na:b@1.2.3.4:4500 # here\n": "",
	} {
		mistake := clusterFileMistake(content)
		if want == "" {
			require.Empty(t, mistake, content)
		} else {
			require.Contains(t, mistake, want, content)
		}
	}
}

func FuzzClusterFile(f *testing.F) {
	f.Add("a:b@1.2.3.4:4500,[::1]:4501:tls # c\n")
	f.Add("a@b:@,")
	f.Fuzz(func(t *testing.T, content string) {
		if clusterFileMistake(content) == "" {
			require.Empty(t, clusterFileMistake("# comment\n"+content))
		}
	})
}
