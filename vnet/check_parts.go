package vnet

import (
	"cmp"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Bounds of labels, in bytes and per object.
const (
	MaxLabels     = 32
	MaxLabelKey   = 63
	MaxLabelValue = 255
)

// check checks a node by itself.
func (n VirtualNode) check(path, kind string) error {
	switch {
	case n.CPU < 0, n.CPU > 0 && n.CPU < MinCPU, n.CPU > MaxCPU:
		return fieldf(path+".cpu", "%s cores is not between %s and %s: leave it out for no limit", n.CPU, CPU(MinCPU), MaxCPU)
	case n.Memory < 0, n.Memory > 0 && n.Memory < MinMemory, n.Memory > MaxMemory:
		return fieldf(path+".memory", "%s is not between %s and %s: leave it out for no limit", n.Memory, MinMemory, MaxMemory)
	case len(n.Run) > 0 && n.Memory > 0 && n.Memory < MinRunMemory:
		return fieldf(path+".memory", "%s is less than the %s that a node with programs needs: raise it, or leave out run", n.Memory, MinRunMemory)
	}
	if err := checkOptionalName(path+".site", n.Site); err != nil {
		return err
	}
	if err := checkOptionalName(path+".host", string(n.Host)); err != nil {
		return err
	}
	if err := n.checkRouting(path, kind); err != nil {
		return err
	}
	if err := cmp.Or(n.Setup.check(path), n.checkForwarding(path, kind)); err != nil {
		return err
	}
	if err := n.checkKind(path, kind); err != nil {
		return err
	}
	if err := n.checkNAT(path, kind); err != nil {
		return err
	}
	if err := cmp.Or(n.checkJoin(path, kind), n.checkDevice(path, kind), n.checkFunction(path+".function", kind)); err != nil {
		return err
	}
	return checkLabels(path+".labels", n.Labels)
}

func checkOptionalName(path, name string) error {
	if name == "" {
		return nil
	}
	return checkName(path, name)
}

// check checks a link by itself.
func (l VirtualLink) check(path string) error {
	if err := checkBandwidth(path, l.Bandwidth); err != nil {
		return err
	}
	if err := checkLatency(path+".latency", l.Latency); err != nil {
		return err
	}
	if l.Paths < 0 || l.Paths > MaxPaths {
		return fieldf(path+".paths", "%d is not between 1 and %d: leave it out for one path", l.Paths, MaxPaths)
	}
	switch {
	case l.Order != OrderByFlow && l.Order != OrderKept:
		return fieldf(path+".paths.order", "%q is no order of packets: use kept or by-flow", l.Order)
	case l.Order == OrderKept && l.Paths < 2:
		return fieldf(path+".paths.count", "order is kept of packets that go by several paths: state 2 to %d", MaxPaths)
	}
	if l.Spread != 0 && l.Paths < 2 {
		return fieldf(path+".spread", "bounds the difference between several paths: state paths too, or leave it out")
	}
	if err := checkLatency(path+".spread", l.Spread); err != nil {
		return err
	}
	if err := checkImpairment(path+".impair", l.Impair); err != nil {
		return err
	}
	return checkLabels(path+".labels", l.Labels)
}

// checkBandwidth checks both directions of what is written at path.
func checkBandwidth(path string, both [2]Bandwidth) error {
	for d, b := range both {
		where := path
		if Direction(d) == Reverse && both[Reverse] != both[Forward] {
			where = path + ".reverse"
		}
		if err := b.check(where); err != nil {
			return err
		}
	}
	return nil
}

func (b Bandwidth) check(path string) error {
	if err := checkRate(path+".min", b.Min, true); err != nil {
		return err
	}
	if b.Max != Unbounded {
		if err := checkRate(path+".max", b.Max, b.Min == 0); err != nil {
			return err
		}
		if b.Min > b.Max {
			return fieldf(path+".min", "%s is above max %s: lower min or raise max", b.Min, b.Max)
		}
	}
	return nil
}

func checkLabels(path string, labels map[string]string) error {
	if len(labels) > MaxLabels {
		return fieldf(path, "%d labels are more than %d: keep fewer", len(labels), MaxLabels)
	}
	for _, k := range sortedKeys(labels) {
		if err := CheckLabel(k, labels[k]); err != nil {
			return fieldf(key(path, k), "%v", err)
		}
	}
	return nil
}

// CheckLabel returns an error unless key and value can label an object.
func CheckLabel(key, value string) error {
	if key == "" || len(key) > MaxLabelKey || !printable(key) {
		return fmt.Errorf("a label's key is 1 to %d printable characters", MaxLabelKey)
	}
	if len(value) > MaxLabelValue || !printable(value) {
		return fmt.Errorf("a label's value is at most %d printable characters", MaxLabelValue)
	}
	return nil
}

// printable refuses what could forge lines or colours in tables and logs.
func printable(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}
