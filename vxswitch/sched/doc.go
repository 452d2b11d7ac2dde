// Package sched has the schedulers and queue managers of VxSwitch. Each is one
// file and one test; to add one, write it and name it in Schedulers or
// ParseManager below.
//
// A scheduler serves at both levels: at the host's its entries are virtual
// switches, at a virtual switch's its input ports.
package sched

import (
	"fmt"
	"strings"

	"sublet/vnet"
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

// ParseManager reads a queue manager as vnet.ParseQueueManager does.
func ParseManager(text string) (vxswitch.ManagerKind, error) {
	m, err := vnet.ParseQueueManager(text)
	if err != nil {
		return nil, err
	}
	switch m.Kind {
	case "red":
		return RED{m.Min, m.Max, m.P, m.Weight}, nil
	case "codel":
		return CoDel{m.Target, m.Interval}, nil
	default:
		return TailDrop{}, nil
	}
}
