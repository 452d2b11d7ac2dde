package file

import (
	"bytes"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"sublet/vnet"
)

// FormatRequest writes r in the native form. ParseRequest gives a filled and
// valid r back.
func FormatRequest(r vnet.Request) ([]byte, error) {
	text, err := format(requestForm(r))
	if err != nil {
		return nil, fmt.Errorf("write request %s: %w", r.Network, err)
	}
	return text, nil
}

// FormatSubstrate writes s in the native form. ParseSubstrate gives a filled
// and valid s back.
func FormatSubstrate(s vnet.Substrate) ([]byte, error) {
	text, err := format(substrateForm(s))
	if err != nil {
		return nil, fmt.Errorf("write substrate: %w", err)
	}
	return text, nil
}

// format encodes a form with one line for each object of a list.
func format(form any) ([]byte, error) {
	var root yaml.Node
	if err := root.Encode(form); err != nil {
		return nil, err
	}
	flow(&root)
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(&root); err != nil {
		return nil, err
	}
	err := encoder.Close()
	return text.Bytes(), err
}

// oneLine are the fields whose elements, or whose whole, are written in flow style.
var (
	oneLineEach = []string{"nodes", "routers", "switches", "links", "hosts", "nat"}
	oneLine     = []string{"window", "switches", "remove"}
)

// flow sets the style of the lists people read as tables.
func flow(n *yaml.Node) {
	for i := 1; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		name, value := n.Content[i-1].Value, n.Content[i]
		switch {
		case slices.Contains(oneLine, name) && !ofMappings(value):
			value.Style = yaml.FlowStyle
		case slices.Contains(oneLineEach, name):
			for _, element := range value.Content {
				element.Style |= flowOf(element)
			}
		default:
			flow(value)
		}
	}
	if n.Kind == yaml.SequenceNode {
		for _, element := range n.Content {
			flow(element)
		}
	}
}

// ofMappings says whether a list's elements are objects: a request's switches
// are, a substrate's are names.
func ofMappings(n *yaml.Node) bool {
	return n.Kind == yaml.SequenceNode && len(n.Content) > 0 && n.Content[0].Kind == yaml.MappingNode
}

// flowOf is no style for scalars, whose quotes must stay.
func flowOf(n *yaml.Node) yaml.Style {
	if n.Kind == yaml.ScalarNode {
		return 0
	}
	return yaml.FlowStyle
}
