package workers

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestMemoryOfControlGroups(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"none":      {nil, unlimited},
		"unlimited": {map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, unlimited},
		"version 2": {map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "1000\n",
			"sys/fs/cgroup/a/memory.max": "2000\n",
		}, 1000},
		"the group above is smaller": {map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "3000\n",
			"sys/fs/cgroup/a/memory.max": "2000\n",
		}, 2000},
		"throttled before the limit": {map[string]string{
			"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "3000\n", "sys/fs/cgroup/a/memory.high": "500\n",
		}, 500},
		"container": {map[string]string{
			"proc/self/cgroup": "0::/../../elsewhere\n", "sys/fs/cgroup/memory.max": "4000\n",
		}, 4000},
		"version 1": {map[string]string{
			"proc/self/cgroup": "3:cpu,cpuacct:/a\n2:hugetlb,memory:/a\n0::/\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "700\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":   "9223372036854771712\n",
		}, 700},
		"rubbish": {map[string]string{
			"proc/self/cgroup": "what\n0::/a\n\n", "sys/fs/cgroup/a/memory.max": "-5\n", "sys/fs/cgroup/memory.max": "",
		}, unlimited},
	} {
		root := fstest.MapFS{}
		for file, text := range c.files {
			root[file] = &fstest.MapFile{Data: []byte(text)}
		}
		require.Equal(t, c.want, groupMemory(root), name)
	}
	require.Positive(t, machineMemory())
}
