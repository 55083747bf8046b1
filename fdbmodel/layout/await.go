package layout

// MaxAwaits is how many functions that wait a heartbeat names.
const MaxAwaits = 64

// Await says what the function of a running future awaits.
type Await struct {
	ID    ID    `msgpack:"i" json:"id"`
	For   ID    `msgpack:"f" json:"for"`   // one of what it awaits; zero if none is known by name
	Count int   `msgpack:"n" json:"count"` // how many futures it awaits
	Since int64 `msgpack:"s" json:"since_ms"`
}
