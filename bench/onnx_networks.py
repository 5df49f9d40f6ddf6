"""Sizes of all tensors of published architectures, random weights, as the importer finds them and as ONNX Runtime makes them.

    python3 bench/onnx_networks.py --library build/release/src/libmoirai.so --journal FILE [NAME...]

Exports each network of timm, torchvision and transformers (those at hand; `small` configurations of the latter) with both
of PyTorch's exporters, compares by onnx_sizes.py, and forgets the file. One line per export goes to the journal; what
is there already is not done again, so that it can be stopped at any time. Every export has a process of its own.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

TIMM = """resnet18 resnet50d resnext50_32x4d wide_resnet50_2 seresnet50 skresnet18 resnest14d res2net50_26w_4s densenet121
vgg11_bn mobilenetv2_100 mobilenetv3_small_100 mobilenetv4_conv_small efficientnet_b0 tf_efficientnet_b0 efficientnetv2_rw_t
tf_efficientnetv2_b0 mnasnet_100 fbnetc_100 lcnet_050 ghostnet_100 ghostnetv2_100 regnetx_002 regnety_002 repvgg_a0 mobileone_s0
convnext_atto convnextv2_atto inception_v3 inception_v4 xception41 nasnetalarge dpn48b hrnet_w18_small dla34 cspresnet50
cspdarknet53 darknet53 hardcorenas_a vovnet39a ese_vovnet19b_dw selecsls42b rexnet_100 edgenext_xx_small fastvit_t8
vit_tiny_patch16_224 deit_tiny_patch16_224 cait_xxs24_224 beit_base_patch16_224 swin_tiny_patch4_window7_224
swinv2_tiny_window8_256 swin_s3_tiny_224 maxvit_tiny_tf_224 coatnet_0_rw_224 coat_tiny crossvit_tiny_240 levit_128s twins_svt_small
pvt_v2_b0 poolformer_s12 mixer_s32_224 gmlp_s16_224 convmixer_768_32 tnt_s_patch16_224 visformer_tiny xcit_nano_12_p16_224
mobilevit_xxs mobilevitv2_050 focalnet_tiny_srf davit_tiny gcvit_xxtiny inception_next_atto volo_d1_224 eva02_tiny_patch14_224
efficientformer_l1 efficientvit_b0 tf_mobilenetv3_small_minimal_100 bat_resnext26ts lambda_resnet26t halonet26t botnet26t_256
vit_base_r50_s16_224 nextvit_small hiera_tiny_224 starnet_s1 tiny_vit_5m_224 repvit_m0_9""".split()
TORCHVISION = """alexnet squeezenet1_1 googlenet shufflenet_v2_x0_5 mnasnet0_5 regnet_y_400mf swin_v2_t maxvit_t
deeplabv3_mobilenet_v3_large fcn_resnet50 lraspp_mobilenet_v3_large r3d_18 s3d""".split()
TRANSFORMERS = """bert roberta distilbert albert electra mpnet deberta-v2 longformer gpt2 gpt_neo gpt_neox opt bloom llama mistral
qwen2 phi gemma mamba t5 bart pegasus whisper wav2vec2 hubert vit deit swin segformer convnext clip dpt detr yolos xlnet
funnel fnet big_bird nystromformer squeezebert mobilebert""".split()


def without_cuda() -> None:
    """torchvision asks for operators of its own when it is imported; its build for GPUs has none without one."""
    import torch

    try:
        lib = torch.library.Library("torchvision", "DEF")
        for op in ("nms", "qnms"):
            lib.define(op + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        without_cuda.keep = lib
    except RuntimeError:
        pass


def small_config(kind: str):
    """A transformers configuration with two layers, and the architecture's own widths as far as that is small."""
    import transformers

    c = transformers.AutoConfig.for_model(kind)
    for key in ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers", "decoder_layers", "num_decoder_layers"):
        if isinstance(getattr(c, key, None), int):
            setattr(c, key, 2)
    for key, value in (("hidden_size", 64), ("d_model", 64), ("n_embd", 64), ("dim", 64), ("intermediate_size", 128), ("d_ff", 128), ("hidden_dim", 128), ("ffn_dim", 128), ("word_embed_proj_dim", 64), ("vocab_size", 1000), ("num_attention_heads", 4), ("num_key_value_heads", 2), ("n_head", 4), ("n_heads", 4), ("num_heads", 4), ("head_dim", 16), ("d_kv", 16), ("encoder_attention_heads", 4), ("decoder_attention_heads", 4), ("encoder_ffn_dim", 128), ("decoder_ffn_dim", 128), ("embedding_size", 64)):
        if kind not in ("swin", "segformer", "convnext", "clip", "dpt", "detr", "funnel", "mobilebert", "wav2vec2", "hubert") and isinstance(getattr(c, key, None), int):
            setattr(c, key, value)
    if hasattr(c, "pad_token_id") and c.pad_token_id and c.pad_token_id >= 1000:
        c.pad_token_id = 0
    if kind == "gpt_neo":
        c.attention_types, c.attention_layers = [[["global", "local"], 1]], ["global", "local"]
    c.use_cache = False
    return c


def transformer(kind: str):
    import torch
    import transformers

    c = small_config(kind)
    model = transformers.AutoModel.from_config(c, attn_implementation="eager")
    name = model.main_input_name
    if name == "pixel_values":
        size = getattr(c, "image_size", 224)
        size = size if isinstance(size, int) else 224
        if kind == "yolos":
            return model, (torch.randn(1, 3, *c.image_size),), [name]
        return model, (torch.randn(1, 3, size, size),), [name]
    if name == "input_features":
        return model, (torch.randn(1, c.num_mel_bins, 3000), torch.ones(1, 4, dtype=torch.long)), [name, "decoder_input_ids"]
    if name == "input_values":
        return model, (torch.randn(1, 16000),), [name]
    ids = torch.ones(1, 64, dtype=torch.long)
    if kind == "clip":
        return model, (ids, torch.randn(1, 3, 224, 224)), ["input_ids", "pixel_values"]
    if getattr(c, "is_encoder_decoder", False):
        return model, (ids, torch.ones(1, 8, dtype=torch.long)), ["input_ids", "decoder_input_ids"]
    return model, (ids,), ["input_ids"]


def make(name: str):
    """A module, its arguments and their names, of "timm:resnet18"."""
    import torch

    torch.manual_seed(1)
    without_cuda()
    source, name = name.split(":")
    if source == "transformers":
        module, args, names = transformer(name)

        class Named(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = module

            def forward(self, *tensors):
                return self.inner(**dict(zip(names, tensors))).to_tuple()[0]

        return Named().eval(), args, names
    if source == "timm":
        import timm

        model = timm.create_model(name, pretrained=False, exportable=True).eval()
        return model, (torch.randn(1, *model.default_cfg["input_size"]),), ["image"]
    import torchvision

    given = {"weights_backbone": None} if name.startswith(("deeplab", "fcn", "lraspp")) else {}
    if name == "googlenet":
        given = {"aux_logits": False, "init_weights": False}
    model = torchvision.models.get_model(name, weights=None, **given).eval()
    return model, (torch.randn(1, 3, 16, 224, 224) if name in ("r3d_18", "s3d") else torch.randn(1, 3, 224, 224),), ["image"]


def export_and_compare(job: str, library: str) -> dict:
    import torch

    import onnx_sizes

    warnings.filterwarnings("ignore")
    name, exporter = job.split("@")
    module, args, names = make(name)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "network.onnx")
        with torch.no_grad():
            torch.onnx.export(module, args, path, dynamo=exporter == "dynamo", opset_version=18, input_names=names, external_data=False) if exporter == "dynamo" else torch.onnx.export(module, args, path, dynamo=False, opset_version=17, input_names=names)
        found, message = onnx_sizes.Importer(library).sizes(path)
        truth = onnx_sizes.run_all(path)
        wrong = {k: w for k, v in truth.items() if (w := onnx_sizes.judge(found.get(k), v))}
        bounds = sum(1 for k in truth if found.get(k, {}).get("known") == "at most")
        return {"job": job, "tensors": len(truth), "wrong": len(wrong), "first": dict(list(wrong.items())[:3]), "at_most": bounds, "refused": message}


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--library", required=True)
    p.add_argument("--journal", required=True)
    p.add_argument("--one", action="store_true", help="the one job named, in this process")
    p.add_argument("--again", action="store_true", help="also jobs that were wrong or failed before")
    p.add_argument("names", nargs="*", help="source:network@script or @dynamo")
    args = p.parse_args()
    if args.one:
        print(json.dumps(export_and_compare(args.names[0], args.library)))
        return
    every = [f"{source}:{n}@{exporter}" for exporter in ("script", "dynamo") for source, names in (("timm", TIMM), ("torchvision", TORCHVISION), ("transformers", TRANSFORMERS)) for n in names]
    journal = Path(args.journal)
    lines = [json.loads(x) for x in journal.read_text().splitlines()] if journal.exists() else []
    rows = {r["job"]: r for r in lines}
    for job in args.names or every:
        old = rows.get(job)
        if old and not (args.again and ("failed" in old or old["wrong"] or old["refused"])):
            continue
        command = [sys.executable, __file__, "--one", "--library", args.library, "--journal", args.journal, job]
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=Path(__file__).parent)
            out = run.stdout.strip().splitlines()
            row = json.loads(out[-1]) if run.returncode == 0 and out else {"job": job, "failed": (run.stderr.strip().splitlines() or ["?"])[-1][:200]}
        except (subprocess.TimeoutExpired, json.JSONDecodeError) as e:
            row = {"job": job, "failed": type(e).__name__}
        rows[job] = row
        with journal.open("a") as f:
            f.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)
    done = [r for r in rows.values() if "failed" not in r]
    right = [r for r in done if not r["wrong"] and not r["refused"]]
    tensors, bad = sum(r["tensors"] for r in done), sum(r["wrong"] for r in done)
    print(f"{len(done)} exports compared, {len(right)} right in every tensor; {tensors} tensors, {bad} wrong; {len(rows) - len(done)} could not be exported or run")


if __name__ == "__main__":
    main()
