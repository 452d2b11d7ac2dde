package session

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// member is one process, told from a later one of the same number by its start.
type member struct {
	pid, parent, session int
	started              string // clock ticks since boot
	zombie               bool
}

// family is a set of processes.
type family []member

// familyOf lists the living members of the session that leader leads and all
// their descendants, whatever session or pid namespace those moved to. The
// leader may be a zombie but not reaped.
func familyOf(leader int) family {
	all := processes()
	in := map[int]bool{leader: true}
	for grown := true; grown; {
		grown = false
		for _, m := range all {
			if !in[m.pid] && (m.session == leader || in[m.parent]) {
				in[m.pid], grown = true, true
			}
		}
	}
	var f family
	for _, m := range all {
		if in[m.pid] && !m.zombie {
			f = append(f, m)
		}
	}
	return f
}

// kill sends SIGKILL to every member that is still itself.
func (f family) kill() {
	for _, m := range f {
		if now, ok := readStat(m.pid); ok && now.started == m.started {
			_ = syscall.Kill(m.pid, syscall.SIGKILL)
		}
	}
}

func processes() []member {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var all []member
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if m, ok := readStat(pid); ok {
			all = append(all, m)
		}
	}
	return all
}

// readStat reads /proc/PID/stat (proc(5)): state, parent, group and session
// follow the name in parentheses, the start is field 22.
func readStat(pid int) (member, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return member{}, false
	}
	after := bytes.LastIndexByte(text, ')')
	fields := strings.Fields(string(text[after+1:]))
	if after < 0 || len(fields) < 20 {
		return member{}, false
	}
	parent, _ := strconv.Atoi(fields[1])
	session, _ := strconv.Atoi(fields[3])
	return member{pid: pid, parent: parent, session: session, started: fields[19], zombie: fields[0] == "Z"}, true
}
