package vnet

import "slices"

// Device is an interface of a host that the operator offers to one node at a time
// (VirtualNode.Device): a tester, a radio, a line to a machine of another network.
type Device struct {
	Name      string `json:"name"` // also the interface's in the node
	Host      HostID `json:"host"`
	Interface string `json:"interface"` // of the host; no substrate link's, exit's or way out's
}

// MaxDevices is how many devices a substrate may have.
const MaxDevices = 256

// devicePattern is what an interface in a node may be called beside its links.
var devicePattern = lazy(`^[A-Za-z0-9][A-Za-z0-9_-]{0,14}$`)

// DeviceOf finds a device by name.
func (s Substrate) DeviceOf(name string) (Device, bool) {
	i := slices.IndexFunc(s.Devices, func(d Device) bool { return d.Name == name })
	if i < 0 {
		return Device{}, false
	}
	return s.Devices[i], true
}

// checkDevices checks the devices, once links, ways out and exits are right.
func (s Substrate) checkDevices() error {
	if len(s.Devices) > MaxDevices {
		return fieldf("devices", "%d devices are more than %d: leave some out", len(s.Devices), MaxDevices)
	}
	for i, d := range s.Devices {
		path := at("devices", i)
		if err := d.check(path); err != nil {
			return err
		}
		if _, ok := s.HostOf(string(d.Host)); !ok {
			return fieldf(path+".host", "there is no host %q: state where the interface is", d.Host)
		}
		if _, before := s.DeviceOf(d.Name); before && slices.IndexFunc(s.Devices, func(o Device) bool { return o.Name == d.Name }) < i {
			return fieldf(path+".name", "there is already a device %q: choose another name", d.Name)
		}
		if user := s.userOf(d.Host, d.Interface, i); user != "" {
			return fieldf(path+".interface", "%s is that of %s: a device needs one of its own", d.Interface, user)
		}
	}
	return nil
}

// userOf names what else has an interface of a host, up to a device; "": nothing.
func (s Substrate) userOf(host HostID, device string, before int) string {
	for _, l := range s.Links {
		for end, port := range l.Ports {
			if l.Ends[end] == string(host) && port.Interface == device {
				return "link " + l.Name
			}
		}
	}
	for i, n := range s.NAT {
		if n.Host == host && n.Interface == device {
			return at("nat", i)
		}
	}
	for i, x := range s.Exits {
		if x.Host == host && x.Interface == device {
			return at("exits", i)
		}
	}
	for i, d := range s.Devices[:before] {
		if d.Host == host && d.Interface == device {
			return at("devices", i)
		}
	}
	return ""
}

// check checks a device by itself.
func (d Device) check(path string) error {
	if err := checkDeviceName(path+".name", d.Name); err != nil {
		return err
	}
	if !interfacePattern().MatchString(d.Interface) {
		return fieldf(path+".interface", "%q is not a device name: use at most 15 letters, digits, '.', '_' and '-'", d.Interface)
	}
	return nil
}

func checkDeviceName(path, name string) error {
	if !devicePattern().MatchString(name) || slices.Contains(takenNames, name) {
		return fieldf(path, "%q is no name of a device: use at most 15 letters, digits, '_' and '-', and not lo, all or default", name)
	}
	return nil
}

// checkDevice checks what a node says of the device that it has.
func (n VirtualNode) checkDevice(path, kind string) error {
	switch {
	case n.Device == "":
		return nil
	case kind != "node":
		return fieldf(path+".device", "only nodes have devices: write it under nodes")
	case n.Join != "":
		return fieldf(path+".device", "the machine that joins has its own devices: leave out device or join")
	case n.Machine():
		return fieldf(path+".device", "a node of kind vm has no devices of hosts: leave out kind, or link the machine to a node with the device")
	case n.Host != "" || n.Site != "":
		return fieldf(path+".device", "the device says where the node is: leave out host and site")
	}
	return checkDeviceName(path+".device", n.Device)
}

// oneDevice refuses a request two of whose nodes have the same device.
func oneDevice(r Request) error {
	of := make(map[string]string)
	for _, n := range r.Union().Nodes {
		if n.Device == "" {
			continue
		}
		if other, taken := of[n.Device]; taken {
			return fieldf("nodes", "%s and %s both have device %q: give it to one", other, n.Name, n.Device)
		}
		of[n.Device] = n.Name
	}
	return nil
}
