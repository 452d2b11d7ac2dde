// Package sched has the schedulers and queue managers of VxSwitch. Each is one
// file and one test; to add one, write it and name it in Schedulers or
// Managers below.
//
// A scheduler serves at both levels: at the host's its entries are virtual
// switches, at a virtual switch's its input ports.
package sched

import (
	"fmt"
	"strings"

	"sublet/vxswitch"
)

// Schedulers are the kinds there are, in the order documents list them.
func Schedulers() []vxswitch.SchedulerKind {
	return []vxswitch.SchedulerKind{DRR{}, SP{}, RR{}, FCFS{}, LQF{}}
}

// Parse finds a scheduler by its name.
func Parse(name string) (vxswitch.SchedulerKind, error) {
	var names []string
	for _, k := range Schedulers() {
		if k.String() == name {
			return k, nil
		}
		names = append(names, k.String())
	}
	return nil, fmt.Errorf("no scheduler %q: there are %s", name, strings.Join(names, ", "))
}

// Managers are the queue managers there are, with their defaults.
func Managers() []vxswitch.ManagerKind {
	return []vxswitch.ManagerKind{TailDrop{}, RED{}, CoDel{}}
}

// ParseManager reads a queue manager: its name, and behind a colon what
// differs from the defaults, for example "red:min=6000,max=18000,p=0.1".
func ParseManager(text string) (vxswitch.ManagerKind, error) {
	name, rest, _ := strings.Cut(text, ":")
	set, err := settings(rest)
	if err != nil {
		return nil, fmt.Errorf("queue manager %q: %w", text, err)
	}
	var k vxswitch.ManagerKind
	switch name {
	case "tail-drop":
		k = TailDrop{}
	case "red":
		k, err = parseRED(set)
	case "codel":
		k, err = parseCoDel(set)
	default:
		return nil, fmt.Errorf("no queue manager %q: there are tail-drop, red, codel", name)
	}
	if err == nil {
		err = set.left()
	}
	if err != nil {
		return nil, fmt.Errorf("queue manager %q: %w", text, err)
	}
	return k, nil
}
