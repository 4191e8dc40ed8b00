package message

import (
	"fmt"
	"slices"

	"example.com/svc/mta"
)

// unserved are the methods of messages that are known and not served yet. A name leaves the list when it is declared.
var unserved = []string{
	"add_authentication_results", "append_text_html", "append_text_plain", "arc_seal", "arc_verify",
	"check_fix_conformance", "dkim_sign", "dkim_verify", "from_header", "get_address_header", "import_headers",
	"import_scheduling_header", "parse_mime", "parse_rfc3464", "set_force_sync", "to_header",
}

// unknownMethod is asked for names that are not declared: the answer of the VM for them is hard to read.
func unknownMethod(_ *mta.Message, name string) (any, error) {
	if slices.Contains(unserved, name) {
		return nil, fmt.Errorf("message:%s is not served yet", name)
	}
	return nil, fmt.Errorf("message has no method %q", name)
}
