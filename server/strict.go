package server

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"sublet/vnet"
)

// strictly is how bodies are read: a name that is unknown, written in other
// case or stated twice is an error, since another parser on the way would read
// another request out of it. Durations are whole nanoseconds.
var strictly = json.JoinOptions(json.RejectUnknownMembers(true), jsonv1.FormatDurationAsNano(true))

// unmarshal reads the only JSON value of a body. Errors are
// *vnet.FieldError, with the path in the names of the body.
func unmarshal(body []byte, value any) error {
	err := json.Unmarshal(body, value, strictly)
	if err == nil {
		return nil
	}
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		path := pathOf(syntax.JSONPointer)
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return &vnet.FieldError{Path: path, Problem: "is stated twice: keep one"}
		}
		return &vnet.FieldError{Path: path, Problem: fmt.Sprintf("the body is not JSON (%v at byte %d): correct it", syntax.Err, syntax.ByteOffset)}
	}
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return &vnet.FieldError{Problem: "the body is not what is expected: see /v1/openapi.yaml"}
	}
	return &vnet.FieldError{Path: pathOf(semantic.JSONPointer), Problem: misfit(semantic)}
}

// misfit says why a JSON value cannot stand where it does.
func misfit(e *json.SemanticError) string {
	if errors.Is(e, json.ErrUnknownName) {
		return "no such field: see /v1/openapi.yaml for the names, which are in lower case"
	}
	what := kinds[e.JSONKind]
	if len(e.JSONValue) > 0 && len(e.JSONValue) <= 2*vnet.MaxName {
		what = string(e.JSONValue)
	}
	return fmt.Sprintf("%s cannot stand here: write %s", what, wanted(e.GoType))
}

// kinds of JSON values in words.
var kinds = map[jsontext.Kind]string{
	'n': "null", 'f': "false", 't': "true", '"': "a string", '0': "this number", '{': "an object", '[': "this list",
}

// wanted says in words which JSON value a Go type is read from.
func wanted(t reflect.Type) string {
	if t == nil {
		return "what /v1/openapi.yaml says"
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number of at most " + strconv.Itoa(t.Bits()) + " bits"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number from 0 on, of at most " + strconv.Itoa(t.Bits()) + " bits"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list"
	case reflect.Array:
		return fmt.Sprintf("a list of exactly %d values", t.Len())
	case reflect.Map:
		return "an object"
	}
	switch t.String() {
	case "time.Time":
		return "a time such as 2027-03-01T08:00:00Z"
	case "netip.Addr":
		return "an address such as 10.1.0.1"
	}
	return "an object"
}

// pathOf writes a JSON pointer the way people write paths: a.b[2].c.
func pathOf(pointer jsontext.Pointer) string {
	var b strings.Builder
	for token := range pointer.Tokens() {
		switch _, err := strconv.Atoi(token); {
		case err == nil:
			b.WriteString("[" + token + "]")
		case vnet.CheckName(token) != nil:
			fmt.Fprintf(&b, "[%.*q]", 2*vnet.MaxName, token)
		case b.Len() > 0:
			b.WriteString("." + token)
		default:
			b.WriteString(token)
		}
	}
	return clip(b.String())
}
