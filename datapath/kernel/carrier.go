package kernel

import (
	"slices"
	"strings"
)

// Dark lists the host's Ethernet interfaces that are down or have no carrier,
// sorted: not the ends of tunnels' trunks, which are Sublet's own.
func (h *Host) Dark() ([]string, error) {
	c, err := h.Dial("")
	if err != nil {
		return nil, err
	}
	defer c.Close()
	links, err := c.Links()
	if err != nil {
		return nil, err
	}
	var dark []string
	for _, l := range links {
		if trunk := l.Kind == "veth" && strings.HasPrefix(l.Name, "sl") && len(l.Name) == 15; !l.Runs && !trunk && l.Name != "lo" {
			dark = append(dark, l.Name)
		}
	}
	slices.Sort(dark)
	return dark, nil
}
