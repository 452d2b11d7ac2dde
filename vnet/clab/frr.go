package clab

import (
	"net/netip"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"sublet/vnet"
)

// imagesOfFRR are those of FRR's project, without a tag.
var imagesOfFRR = []string{"frrouting/frr", "docker.io/frrouting/frr", "quay.io/frrouting/frr"}

const configOfFRR = "/etc/frr/frr.conf"

// filesOfFRR are those that are for FRR of the image only.
var filesOfFRR = []string{configOfFRR, "/etc/frr/daemons", "/etc/frr/vtysh.conf"}

func isFRR(image string) bool {
	image, _, _ = strings.Cut(image, "@")
	if at := strings.LastIndexByte(image, ':'); at > strings.LastIndexByte(image, '/') {
		image = image[:at]
	}
	return slices.Contains(imagesOfFRR, image)
}

// withoutImage lets a node have the files of its host. One that is FRR's becomes a
// router whose daemons are told what its file has.
func (r *reader) withoutImage(at *yaml.Node, where, kind string, n *vnet.VirtualNode, l *life) {
	if n.Image == "" {
		return
	}
	r.notes = append(r.notes, vnet.Note{Line: at.Line, Column: at.Column, Where: where, Text: "image " + short(n.Image) + " is left out: it has the files of its host"})
	if isFRR(n.Image) || kind == "frr" {
		r.daemonsOfHost(at, where, n)
	}
	n.Image = ""
	switch {
	case l.start == nil || !l.start.Entrypoint:
	case len(l.start.Cmd) == 0:
		l.start = nil
	default:
		l.start.Entrypoint = false
	}
}

// daemonsOfHost gives a node's file for FRR to the daemons of its host.
func (r *reader) daemonsOfHost(at *yaml.Node, where string, n *vnet.VirtualNode) {
	found := slices.IndexFunc(n.Files, func(f vnet.File) bool { return f.Path == configOfFRR })
	if found < 0 {
		r.lost(at, where, "the routing of its image is left out: no bind or startup-config gives it %s", configOfFRR)
		return
	}
	kept, left, err := vnet.KeepFRR(n.Files[found].Text)
	if err != nil {
		r.lost(at, where, "%s is left out: %v", configOfFRR, err)
		return
	}
	for _, problem := range left {
		r.lost(at, where, "%s: %s", configOfFRR, problem)
	}
	n.FRR = kept
	n.Files = slices.DeleteFunc(n.Files, func(f vnet.File) bool { return slices.Contains(filesOfFRR, f.Path) })
	if len(n.Files) == 0 {
		n.Files = nil
	}
}

// liftFRR gives links' ends the addresses that a configuration gives interfaces
// there, and takes them out of it. It says how many.
func (r *reader) liftFRR(n *vnet.VirtualNode, links []vnet.VirtualLink) (lifted int) {
	lines, device := strings.Split(n.FRR, "\n"), ""
	for i, line := range lines {
		words := strings.Fields(line)
		switch {
		case len(words) == 2 && words[0] == "interface":
			device = words[1]
		case len(words) == 1 && words[0] == "exit", len(words) > 0 && words[0] == "router":
			device = ""
		case len(words) == 3 && (words[0] == "ip" || words[0] == "ipv6") && words[1] == "address":
			if p, err := netip.ParsePrefix(words[2]); err == nil && liftable(p) && r.give(p, device, n.Name, links) {
				lines[i] = "!"
				lifted++
			}
		}
	}
	n.FRR = strings.Join(lines, "\n")
	return lifted
}
