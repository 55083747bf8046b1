package layout

// ReadyClass is the part of a ready key up to its class.
func (k Keyspace) ReadyClass(shard int, c Class) []byte { return k.readyClass(shard, c) }
