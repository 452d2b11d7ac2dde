package vxdl

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"sublet/vnet"
)

// Labels that stand for elements vnet has no word for, and tags that stand for
// words of vnet VXDL has no element for.
const (
	labelModel        = "vxdl:model"
	labelImage        = "vxdl:image"
	labelRegion       = "vxdl:region"
	labelArchitecture = "vxdl:architecture"
	labelDevice       = "vxdl:device" // further ones: vxdl:device-2, ...
	labelKind         = "vxdl:kind"   // kindAccessPoint
	kindAccessPoint   = "vAccessPoint"

	tagHost    = "sublet:host"
	tagAddress = "sublet:address"
	tagAccess  = "sublet:access" // of a vAccessPoint: the exit
)

// common reads what all resources share into labels, and the exclusivity.
func (r *reader) common(e *element, f fields) (labels map[string]string, exclusive bool, err error) {
	if err := r.ownWindow(f); err != nil {
		return nil, false, err
	}
	if x := f.one("exclusivity"); x != nil {
		if exclusive, err = strconv.ParseBool(x.value()); err != nil {
			return nil, false, r.fail(x, "%q is neither true nor false", short(x.value()))
		}
	}
	labels = make(map[string]string)
	r.keep(labels, f.one("model"), labelModel)
	r.keep(labels, f.one("image"), labelImage)
	r.keep(labels, f.one("region"), labelRegion)
	for i, device := range f["device"] {
		r.keep(labels, device, deviceLabel(i))
	}
	for _, tag := range f["tag"] {
		t, err := r.fields(tag, "tag")
		if err != nil {
			return nil, false, err
		}
		r.label(labels, tag, verbatim(t.one("key")), verbatim(t.one("value")))
	}
	return labels, exclusive, nil
}

func deviceLabel(i int) string {
	if i == 0 {
		return labelDevice
	}
	return fmt.Sprintf("%s-%d", labelDevice, i+1)
}

// keep makes a label of an element that is there.
func (r *reader) keep(labels map[string]string, e *element, key string) {
	if e != nil {
		r.label(labels, e, key, verbatim(e))
	}
}

// label adds a label if it can be one and is not there yet.
func (r *reader) label(labels map[string]string, e *element, key, value string) {
	err := vnet.CheckLabel(key, value)
	_, twice := labels[key]
	switch {
	case err != nil:
		r.lose(e, "is not kept: %v", err)
	case twice:
		r.lose(e, "is not kept: there is a label %q already", key)
	case !slices.Contains(ownTags, key) && !hasRoom(labels):
		r.lose(e, "is not kept: there are %d labels already", vnet.MaxLabels)
	default:
		labels[key] = value
	}
}

// ownTags are kept as labels only while a resource is read.
var ownTags = []string{tagHost, tagAddress, tagAccess}

// hasRoom says whether one more label may be kept; tags of ours are none.
func hasRoom(labels map[string]string) bool {
	n := len(labels)
	for _, key := range ownTags {
		if _, ok := labels[key]; ok {
			n--
		}
	}
	return n < vnet.MaxLabels
}

// verbatim is the text with its spaces, unless it was broken over lines.
func verbatim(e *element) string {
	switch {
	case e == nil:
		return ""
	case strings.ContainsAny(e.text, "\n\r\t"):
		return e.value()
	}
	return e.text
}

// someLabels is nil when there are none, as in every other request.
func someLabels(labels map[string]string) map[string]string {
	if len(labels) == 0 {
		return nil
	}
	return labels
}

// reserved reads a capacity of which vnet has one amount. The smallest that
// satisfies the document is taken.
func (r *reader) reserved(e *element, u units) (int64, error) {
	if e == nil {
		return 0, nil
	}
	c, err := r.capacity(e, u)
	if err != nil {
		return 0, err
	}
	a := c.start
	if len(c.stages) > 0 {
		r.lose(e, "does not change with events: only rates of links do")
		for i := 0; a == nil; i++ {
			a = c.stages[i]
		}
	}
	switch {
	case a.low < 0 && a.high < 0:
		return 0, nil
	case a.low < 0:
		r.note(e, "only a maximum is stated: it is reserved in full")
		return int64(a.high), nil
	case a.choice:
		r.note(e, "the smallest of the alternatives is reserved")
	case a.high > a.low:
		r.lose(e, "the minimum is reserved, the maximum is not kept")
	}
	return int64(a.low), nil
}

// placed takes tags of ours off the labels and gives them back their meaning.
func (r *reader) placed(e *element, n *vnet.VirtualNode) error {
	if host, ok := n.Labels[tagHost]; ok {
		delete(n.Labels, tagHost)
		n.Host = vnet.HostID(r.valid(e, "host", host))
	}
	if text, ok := n.Labels[tagAddress]; ok {
		delete(n.Labels, tagAddress)
		address, err := netip.ParseAddr(text)
		if err != nil {
			return r.fail(e, "tag %s: %q is not an address such as 10.1.0.1", tagAddress, short(text))
		}
		n.Address = address
	}
	n.Labels = someLabels(n.Labels)
	return nil
}
