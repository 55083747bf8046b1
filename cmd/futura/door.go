package main

import "context"

// door lets other processes use a store that only this one can open.
type door struct {
	// store is the name under which they open it, empty if they need no door.
	store  string
	failed chan error
}

func (n *node) openDoor(context.Context) (*door, error) { return &door{}, nil }

// close ends the door. It may be nil.
func (d *door) close() error { return nil }
