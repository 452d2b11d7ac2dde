package session

import (
	"syscall"

	"sublet/internal/proc"
)

// family is a set of processes.
type family []proc.Process

// familyOf lists the living members of the session that leader leads and all
// their descendants, whatever session or pid namespace those moved to. The
// leader may be a zombie but not reaped.
func familyOf(leader int) family {
	all := proc.All()
	in := map[int]bool{leader: true}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if !in[p.PID] && (p.Session == leader || in[p.Parent]) {
				in[p.PID], grown = true, true
			}
		}
	}
	var f family
	for _, p := range all {
		if in[p.PID] {
			f = append(f, p)
		}
	}
	return f
}

// kill sends SIGKILL to every member that is still itself.
func (f family) kill() {
	for _, p := range f {
		if p.Alive() {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
}
