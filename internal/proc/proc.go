// Package proc reads processes from /proc (proc(5)).
package proc

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// Process is one process, told from a later one of the same number by its
// start.
type Process struct {
	PID, Parent, Session int
	Started              string // clock ticks since boot
	Stopped              bool   // by a signal: none of its threads runs until it is continued
}

// Living reads a process; false: there is none, or it has ended and waits to be
// reaped.
//
// A process is alive as long as any of its threads is: the state of all is that
// of the first, a zombie as soon as it has ended, be it that the others take
// longer to die of a signal or that it ended by itself. Until the last is gone
// they hold what the process holds: files, locks, sockets.
func Living(pid int) (Process, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Process{}, false
	}
	return parse(pid, text)
}

// Alive says that the process still lives, and is none that got its number.
func (p Process) Alive() bool {
	now, ok := Living(p.PID)
	return ok && now.Started == p.Started
}

// All lists the living processes; what has ended has no children any more.
func All() (all []Process) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := Living(pid); ok {
			all = append(all, p)
		}
	}
	return all
}

// Fields of stat(5) that follow the name in parentheses, which may contain
// spaces and parentheses.
const (
	state   = 0
	parent  = 1
	session = 3
	threads = 17
	started = 19
)

// Busy says of a thread's stat(5) that it runs, waits for a processor, or for a
// disk.
func Busy(stat []byte) bool {
	name := bytes.LastIndexByte(stat, ')')
	fields := strings.Fields(string(stat[name+1:]))
	return name >= 0 && len(fields) > state && (fields[state] == "R" || fields[state] == "D")
}

func parse(pid int, text []byte) (Process, bool) {
	name := bytes.LastIndexByte(text, ')')
	fields := strings.Fields(string(text[name+1:]))
	if name < 0 || len(fields) <= started {
		return Process{}, false
	}
	number := func(field int) int {
		n, _ := strconv.Atoi(fields[field])
		return n
	}
	p := Process{PID: pid, Parent: number(parent), Session: number(session), Started: fields[started], Stopped: fields[state] == "T"}
	return p, fields[state] != "Z" && fields[state] != "X" || number(threads) > 1
}
