# shellcheck shell=bash
# What the Action's scripts share. Sourced by bash, also the old one of macOS (3.2): no maps, no mapfile.
#
# Everything from outside comes in as environment variables (action.yml) and is hostile: branch names,
# titles and file names may hold anything. Nothing is evaluated, everything is quoted.

# say TEXT: a line of talk that is never a command to the runner.
say() { printf 'weir: %s\n' "$(one_line "$1")"; }

# warn TEXT, notice TEXT, die TEXT: shown on the run's page; die ends the step as a usage error. To
# standard error, where the runner reads commands as well: standard output may be caught.
warn() { printf '::warning title=weir::%s\n' "$(escaped "$1")" >&2; }
notice() { printf '::notice title=weir::%s\n' "$(escaped "$1")" >&2; }
die() {
  printf '::error title=weir::%s\n' "$(escaped "$1")" >&2
  exit 2
}

# one_line TEXT: without control characters, and without what older runners take for a command
# wherever it stands in a line.
one_line() {
  local text
  text=$(printf '%s' "$1" | LC_ALL=C tr -c '[:print:]\200-\377' ' ')
  printf '%s' "${text//##[/## [}"
}

# escaped TEXT: as the message of a workflow command.
escaped() {
  local text
  text=$(one_line "$1")
  printf '%s' "${text//\%/%25}"
}

# output NAME VALUE: to GITHUB_OUTPUT, under a delimiter that VALUE cannot hold.
output() {
  local mark="weir_${RANDOM}${RANDOM}${RANDOM}"
  while [[ $2 == *"$mark"* ]]; do mark=$mark$RANDOM; done
  printf '%s<<%s\n%s\n%s\n' "$1" "$mark" "$2" "$mark" >>"$GITHUB_OUTPUT"
}

# yes_or_no NAME VALUE: dies where an input is neither true nor false.
yes_or_no() {
  case $2 in
    true | false) ;;
    *) die "input \"$1\" is \"$2\": true or false is meant" ;;
  esac
}

# value_of KEY FILE: a word that stands at the top of weir.verdict/1, as weir writes it (one key a
# line, one blank before it: text from outside cannot look like that, a string holds no line break).
value_of() { sed -n "s/^ \"$1\": \"\([A-Za-z0-9_./:@+-]*\)\",\{0,1\}\$/\1/p" "$2" | head -n 1; }

# cells_with VERDICT FILE: how many cells have it, from "totals".
cells_with() {
  local number
  number=$(sed -n "/^ \"totals\": {/,/^ }/s/^  \"$1\": \([0-9]*\),\{0,1\}\$/\1/p" "$2" | head -n 1)
  printf '%s' "${number:-0}"
}

# trust_checkout: in a container job the workspace belongs to another user than the one the steps run
# as, and git refuses it. Said for this step's git alone, and what it starts; not where there is none.
trust_checkout() {
  local said
  if ! said=$(git rev-parse --git-dir 2>&1) && [[ $said == *safe.directory* ]]; then
    export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
  fi
}

# use_token ORIGIN TOKEN: git asks ORIGIN with it. By the environment: every user of the machine can read
# command lines.
use_token() {
  local known=${GIT_CONFIG_COUNT:-0} # trust_checkout may have set one
  [[ $1 == https://* ]] || return 0
  export GIT_CONFIG_COUNT=$((known + 1)) "GIT_CONFIG_KEY_$known=http.$1.extraheader" \
    "GIT_CONFIG_VALUE_$known=AUTHORIZATION: basic $(printf 'x-access-token:%s' "$2" | base64 | tr -d '\n')"
}

# inert: names of cells and machines are in what weir prints; no line of it is a command to the runner.
inert() { sed -e 's/##\[/## [/g' -e 's/^[[:space:]]*::/ : :/'; }

# take_artifact NAME FOLDER TOKEN: what the gate NAME of this workflow run left.
take_artifact() {
  command -v gh >/dev/null || die "gh is missing: hosted runners have it"
  GH_TOKEN=$3 gh run download "$GITHUB_RUN_ID" --repo "$GITHUB_REPOSITORY" --name "weir-$1" --dir "$2" ||
    die "this workflow run left no artifact weir-$1"
}
