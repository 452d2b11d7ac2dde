package kernel

import "slices"

// NoCarrier lists the host's Ethernet interfaces that are down or have no carrier,
// sorted: not the ends of pairs that are Sublet's own, by their name.
func (h *Host) NoCarrier(own func(device string) bool) ([]string, error) {
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
		if !l.Runs && l.Name != "lo" && !(l.Kind == "veth" && own(l.Name)) {
			dark = append(dark, l.Name)
		}
	}
	slices.Sort(dark)
	return dark, nil
}
