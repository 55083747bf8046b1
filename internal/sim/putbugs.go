package sim

import (
	"github.com/futura-run/futura/fdbmodel/layout"
)

// putBugs are about values that are put, and about pins.
func putBugs() []plantedBug {
	return []plantedBug{
		{name: "puts without conflicts", text: "a put does not see that the holder of its value goes", tags: []string{tagPut},
			blind: true},
		{name: "lost value computed", text: "a value that was put and lost is made by a run", tags: []string{tagLose},
			page: showAll(layout.RowSpec, func(s *layout.Spec) {
				if s.IsPut() {
					s.AllowReconstruction = true
				}
			})},
		{name: "pin overlooked", text: "a discard and an expiry don't see who has pinned a future",
			tags: []string{tagDiscard, tagExpire}, page: hide(layout.StatePins)},
		{name: "pin for ever", text: "who unpins a future leaves its pin", tags: []string{tagPin},
			write: drop(clearKey, layout.StatePins)},
		{name: "session for ever", text: "a session whose client is gone does not end, nor do its pins",
			tags: []string{"futura-session"}, write: drop(clearKey, "session")},
		{name: "unpinned for ever", text: "what is pinned when its retention has passed is never looked at again",
			tags: []string{tagExpire}, write: drop(stampKey, "done")},
	}
}

// placeBugs are about copies that go from worker to worker, and futures that follow them.
func placeBugs() []plantedBug {
	return []plantedBug{
		{name: "copy not counted", text: "a worker takes a copy and does not say so", tags: []string{tagClone},
			write: drop(stampKey, layout.KeyCopy)},
		{name: "transfer of one more", text: "a transfer leaves the copies of others", tags: []string{tagClone},
			write: drop(clearKey, layout.KeyCopy)},
		{name: "copies without conflicts", text: "who takes a copy does not see that it was declared dead, or stops",
			tags: []string{tagClone}, blind: true},
		{name: "handed over to nobody", text: "who is to take over an object says that it did", deaf: true},
		{name: "near forgotten", text: "a future that must be near an object may run anywhere",
			tags: []string{tagResolve, tagRead}, page: showAll(layout.RowSpec, forgetNear)},
		{name: "bound to the dead", text: "what waits for a dead worker alone goes on waiting", tags: []string{tagReap},
			page: hide(layout.PlaceAssigned)},
	}
}

func forgetNear(s *layout.Spec) { s.Near, s.MustBeNear = layout.ID{}, false }
