package layout

// Module describes a stored WASM module.
type Module struct {
	CID      string `msgpack:"-" json:"cid"`
	Size     int64  `msgpack:"s" json:"size"`
	StoredAt int64  `msgpack:"t" json:"stored_at_ms"`
	// Retired is when its removal began: no future can be submitted for it then. It
	// is 0 for a module that is in use.
	Retired int64    `msgpack:"r,omitempty" json:"retired_at_ms,omitempty"`
	Aliases []string `msgpack:"-" json:"aliases,omitempty"`
}

// AliasRecord names the module that an alias stands for.
type AliasRecord struct {
	CID string `msgpack:"c"`
	At  int64  `msgpack:"t" json:"at_ms"`
}
