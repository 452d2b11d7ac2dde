package lab

import (
	"fmt"

	"sublet/vnet"
)

// What a lab can hold: each host runs an agent, and each host and switch is a
// network namespace.
const (
	maxHosts    = 200
	maxSwitches = 200
)

// Fits says what makes a substrate too large for a lab.
func Fits(sub vnet.Substrate) error {
	switch {
	case len(sub.Hosts) > maxHosts:
		return fmt.Errorf("a lab of %d hosts is larger than %d, each of which runs an agent: take a smaller substrate", len(sub.Hosts), maxHosts)
	case len(sub.Switches) > maxSwitches:
		return fmt.Errorf("a lab of %d switches is larger than %d: take a smaller substrate", len(sub.Switches), maxSwitches)
	}
	return nil
}
