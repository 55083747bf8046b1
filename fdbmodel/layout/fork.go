package layout

// Fork says which future a new one was made from, and how far it began.
type Fork struct {
	From ID `msgpack:"f" json:"from"`
	// Step is the recorded step that was named to run first, empty for none.
	Step string `msgpack:"s,omitempty" json:"step,omitempty"`
	// After is the last of the steps that it has taken over, empty for none.
	After string `msgpack:"a,omitempty" json:"after,omitempty"`
	// Copied is how many recorded steps it has taken over, and Set how many were given it with another value.
	Copied int `msgpack:"c,omitempty" json:"copied"`
	Set    int `msgpack:"v,omitempty" json:"set,omitempty"`
	// Given is a hash of those values, empty for none.
	Given string `msgpack:"g,omitempty" json:"-"`
	// Name is that of the forks that were made together, empty for one by itself.
	Name string `msgpack:"n,omitempty" json:"name,omitempty"`
}
