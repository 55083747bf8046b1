package lane

import (
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// linedKey is where a transaction remembers what it puts in line in a cluster.
type linedKey struct{ cluster string }

// Share says that the transaction is the caller's, who may submit several times in it. What one of these submits
// puts in line the later ones know, if the transaction can remember it.
func (x *Index) Share() {
	x.shared = true
	local := kv.LocalOf(x.Tx)
	if local == nil {
		return
	}
	key, known := linedKey{string(x.Keys.All().Begin)}, false
	if x.Lined, known = local.Value(key).(map[layout.ID]*layout.Row); !known {
		x.Lined = map[layout.ID]*layout.Row{}
		local.Set(key, x.Lined)
	}
}
