package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sublet/lab"
)

// process is what decides whose memory one's is.
type process struct {
	pid, parent          int
	name, command, group string
}

// processes are all of the machine; one that ends meanwhile is left out.
func processes() (list []process) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		stat, _ := os.ReadFile(dir + "/stat")
		command, _ := os.ReadFile(dir + "/cmdline")
		group, _ := os.ReadFile(dir + "/cgroup")
		head, rest, found := strings.Cut(string(stat), ") ")
		if !found {
			continue
		}
		p := process{command: string(command), group: string(group)}
		p.pid, _ = strconv.Atoi(filepath.Base(dir))
		_, p.name, _ = strings.Cut(head, "(")
		if _, err := fmt.Sscanf(rest, "%s %d", new(string), &p.parent); err == nil {
			list = append(list, p)
		}
	}
	return list
}

// ofSublet are the server, the agents and what runs in nodes.
func ofSublet(run string) map[int]bool {
	return closed(func(p process) bool {
		return strings.Contains(p.command, run) || strings.Contains(p.group, "/"+lab.Cgroup(run)+"/")
	})
}

func below(pid int) map[int]bool { return closed(func(p process) bool { return p.pid == pid }) }

func commanded(name string) map[int]bool {
	return closed(func(p process) bool { return p.name == name })
}

// closed are processes and all that they started.
func closed(is func(process) bool) map[int]bool {
	list, found := processes(), make(map[int]bool)
	for grown := true; grown; {
		grown = false
		for _, p := range list {
			if !found[p.pid] && (is(p) || found[p.parent]) {
				found[p.pid], grown = true, true
			}
		}
	}
	return found
}

// proportional sums the memory of processes in MiB, of what several share each
// its part (proc_pid_smaps(5)).
func proportional(pids map[int]bool) (mib float64) {
	for pid := range pids {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		for line := range strings.Lines(string(text)) {
			if rest, is := strings.CutPrefix(line, "Pss:"); is {
				kib, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
				mib += kib / 1024
			}
		}
	}
	return mib
}
