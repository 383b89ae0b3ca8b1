"""Writes pictures of the kinds that real data has, and prints what Pillow says of them.

With a second directory, compares the thumbnails in it with Pillow's, and prints what is wrong.
"""

import io
import json
import pathlib
import random
import struct
import sys
import zlib

from PIL import Image, ImageFile, ImageOps

HERE = pathlib.Path(sys.argv[1])
SIZE = 24
CASES = []
MIME = {"JPEG": "image/jpeg", "PNG": "image/png", "GIF": "image/gif", "WEBP": "image/webp", "BMP": "image/bmp",
        "DIB": "image/bmp", "TIFF": "image/tiff", "AVIF": "image/avif", "MPO": "image/jpeg"}


def quadrants(mode="RGB", size=(61, 43)):
    """Four colours and a slope, so that a turn or a wrong order of colours shows."""
    image = Image.new("RGB", size)
    (width, height), pixels = size, image.load()
    colours = ((220, 30, 20), (30, 200, 40), (20, 40, 210), (230, 220, 60))
    for y in range(height):
        for x in range(width):
            colour = colours[(2 * y // height) * 2 + 2 * x // width]
            pixels[x, y] = tuple(value * (3 * width + x) // (4 * width) for value in colour)
    if mode in ("RGBA", "LA"):
        image.putalpha(Image.linear_gradient("L").resize(size))
    return image.convert(mode)


def case(name, about, data, **more):
    (HERE / name).write_bytes(data)
    expected = {"thumbnail": False, **more}
    try:
        image = Image.open(io.BytesIO(data))
        expected |= {"mime": MIME[image.format], "size": image.size, "frames": getattr(image, "n_frames", 1)}
        image.load()
        expected["thumbnail"] = True
    except Exception:
        # Pillow refuses it. Then only a crash is wrong.
        pass
    CASES.append({"name": about, "reference": name, "expected": expected | more})


def saved(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, depth, colour, rows, interlace=0, before=b""):
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    data = zlib.compress(rows)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + before + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def adam7(width, height, pixel):
    """The rows of the seven passes, one byte a sample."""
    out = b""
    for x0, y0, dx, dy in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)):
        for y in range(y0, height, dy):
            row = b"".join(bytes(pixel(x, y)) for x in range(x0, width, dx))
            out += b"\0" + row if row else b""
    return out


def exif(orientation, gps=False):
    data = Image.Exif()
    data[0x0112], data[0x010F], data[0x0110] = orientation, "Camera & Söhne", "Model 1"
    if gps:
        data.get_ifd(0x8825).update({1: "N", 2: (48.0, 51.0, 24.0), 3: "W", 4: (2.0, 21.0, 7.0)})
    return data


XMP = (b'<?xpacket begin="" id="x"?><x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="r">'
       b'<rdf:Description exif:GPSLatitude="48,51.4N" dc:title="A title"><exif:GPSLongitude>2,21.1W</exif:GPSLongitude>'
       b'</rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="w"?>')


def formats():
    rgb = quadrants()
    for name, options in {"plain": {}, "progressive": {"progressive": True}, "444": {"subsampling": 0}, "422": {"subsampling": 1},
                          "restart": {"restart_marker_blocks": 2}, "optimised": {"optimize": True, "quality": 30}}.items():
        case(f"{name}.jpg", f"a JPEG, {name}", saved(rgb, "JPEG", **{"quality": 90} | options))
    for mode in ("L", "CMYK"):
        case(f"{mode}.jpg", f"a JPEG in {mode}", saved(quadrants(mode), "JPEG", quality=90))
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"):
        image = quadrants("L").point(lambda value: value * 257, "I").convert("I;16") if mode == "I;16" else quadrants(mode)
        case(f"{mode.replace(';', '')}.png", f"a PNG in {mode}", saved(image, "PNG"), deep=mode == "I;16")
    for depth in (1, 2, 4):
        rows = b"".join(b"\0" + bytes((y * 37 + x * 11) & 255 for x in range(depth * 2)) for y in range(16))
        case(f"grey{depth}.png", f"a PNG of {depth} bits", png(16, 16, depth, 0, rows))
        palette = chunk(b"PLTE", bytes(range(3 << depth))) + chunk(b"tRNS", b"\0\x80")
        case(f"palette{depth}.png", f"a palette of {depth} bits with alpha", png(16, 16, depth, 3, rows, 0, palette))
    rows = adam7(13, 11, lambda x, y: (x * 19, y * 23, 40, 255 - x))
    case("interlaced.png", "an interlaced PNG", png(13, 11, 8, 6, rows, 1))
    rows = b"".join(b"\0" + struct.pack(">9H", *(y * 6000 + x for x in range(9))) for y in range(3))
    case("rgb16.png", "a PNG of 16 bits", png(3, 3, 16, 2, rows), deep=True)
    case("key.png", "a PNG with a transparent colour", png(2, 2, 8, 2, b"\0" + bytes((1, 2, 3, 9, 9, 9)) + b"\0" + bytes(6), 0,
                                                               chunk(b"tRNS", b"\0\1\0\2\0\3")))
    case("plain.gif", "a GIF", saved(rgb, "GIF"))
    case("interlaced.gif", "an interlaced GIF", saved(rgb, "GIF", interlace=True))
    frames = [quadrants(size=(20, 20)).rotate(90 * turn) for turn in range(4)]
    for kind in ("GIF", "PNG", "WEBP"):
        data = saved(frames[0], kind, save_all=True, append_images=frames[1:], duration=120, loop=3, **({"lossless": True} if kind == "WEBP" else {}))
        case(f"moving.{kind.lower()}", f"an animated {kind}", data, duration=480, plays=3)
    for mode, options in (("RGB", {"quality": 90}), ("RGBA", {"quality": 90}), ("RGB", {"lossless": True}), ("RGBA", {"lossless": True})):
        name = f"{mode}-{'lossless' if 'lossless' in options else 'lossy'}.webp"
        case(name, f"a WebP, {name}", saved(quadrants(mode), "WEBP", **options))
    for mode in ("1", "L", "P", "RGB"):
        case(f"{mode}.bmp", f"a BMP in {mode}", saved(quadrants(mode), "BMP"))
    case("photo.avif", "an AVIF, which is not decoded", saved(rgb, "AVIF"), undecoded=True)
    case("photo.tif", "a TIFF, which is not decoded", saved(rgb, "TIFF"), undecoded=True)
    case("wrong.png", "a JPEG that is called PNG", saved(rgb, "JPEG", quality=90))
    case("no extension", "a picture without an extension", saved(rgb, "PNG"))


def metadata():
    for orientation in range(1, 9):
        data = saved(quadrants(), "JPEG", exif=exif(orientation), quality=95)
        case(f"turned{orientation}.jpg", f"orientation {orientation}", data, orientation=orientation)
    for kind, name in (("PNG", "turned.png"), ("WEBP", "turned.webp")):
        case(name, f"orientation in {kind}", saved(quadrants(), kind, exif=exif(6)), orientation=6)
    for kind, options in (("JPEG", {"xmp": XMP}), ("PNG", {}), ("WEBP", {"xmp": XMP, "lossless": True}), ("AVIF", {"xmp": XMP})):
        data = saved(quadrants(), kind, exif=exif(1, gps=True), **options)
        case(f"gps.{kind.lower()}", f"a position in {kind}", data, gps=True, undecoded=kind == "AVIF")
    both = chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + XMP) + chunk(b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(b"GPS"))
    case("texts.png", "positions in the texts of a PNG", png(1, 1, 8, 0, b"\0\x80", 0, both))
    case("film.jpg", "a JPEG with a film after its end", saved(quadrants(), "JPEG") + b"\0\0\0\x18ftypmp42 GPSLatitude " + XMP)


def broken():
    """Truncated and changed files. Pillow may show a part of them or refuse them; belljar must answer."""
    chance = random.Random(7)
    sources = ("plain.jpg", "progressive.jpg", "RGBA.png", "interlaced.png", "moving.gif", "RGB-lossy.webp", "RGBA-lossless.webp",
               "moving.webp", "RGB.bmp", "gps.jpeg", "gps.avif", "photo.tif")
    for source in sources:
        data = (HERE / source).read_bytes()
        for part in (3, 30, 60, 95):
            case(f"cut{part}-{source}", f"{part} % of {source}", data[: len(data) * part // 100], broken=True)
        for round in range(4):
            changed = bytearray(data)
            for _ in range(1 + round * 3):
                changed[chance.randrange(8, len(data))] = chance.randrange(256)
            case(f"changed{round}-{source}", f"changed bytes in {source}", bytes(changed), broken=True)
    huge = struct.pack(">IIBBBBB", 2**31 - 1, 2**31 - 1, 16, 6, 0, 0, 0)
    case("huge.png", "a PNG that claims 4.6 billion billion pixels", b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", huge) + chunk(b"IDAT", zlib.compress(bytes(99))),
         broken=True, refused="million are decoded")
    case("huge.gif", "a GIF with a screen of 65,535 by 65,535 pixels", b"GIF89a\xff\xff\xff\xff\0\0\0" + b",\0\0\0\0\1\0\1\0\0\2\2D\1\0;", broken=True,
         refused="million are decoded")
    case("huge.jpg", "a JPEG with a frame of 65,500 by 65,500 pixels", (HERE / "plain.jpg").read_bytes().replace(struct.pack(">HH", 43, 61), b"\xff\xdc\xff\xdc", 1),
         broken=True, refused="million are decoded")
    case("huge.bmp", "a BMP with two thousand million rows", b"BM" + bytes(8) + b"\x36\0\0\0\x28\0\0\0\1\0\0\0\xff\xff\xff\x7f\1\0\x18\0" + bytes(24), broken=True,
         refused="million are decoded")


def compare(thumbnails):
    """What is wrong with thumbnails that belljar made: dimensions, and colours beyond those of another filter."""
    ImageFile.LOAD_TRUNCATED_IMAGES = True
    wrong = []
    for path in sorted(thumbnails.iterdir()):
        original = ImageOps.exif_transpose(Image.open(HERE / path.name))
        if original.mode.startswith("I"):
            original = original.convert("I").point(lambda value: value / 256).convert("L")
        expected, found = original.convert("RGBA"), Image.open(path).convert("RGBA")
        expected = ImageOps.contain(expected, (SIZE, SIZE), Image.Resampling.BOX) if max(expected.size) > SIZE else expected
        if any(abs(a - b) > 1 for a, b in zip(found.size, expected.size)):
            wrong.append(f"{path.name}: {found.size} instead of {expected.size}")
            continue
        # Small enough that the filter of a thumbnail does not matter, and large enough to show a turn.
        small = (min(6, found.width), min(6, found.height))
        white = Image.new("RGBA", small, "white")
        pair = (image.resize(small, Image.Resampling.BOX) for image in (expected, found))
        pair = [Image.alpha_composite(white, image).convert("RGB").tobytes() for image in pair]
        difference = sum(abs(a - b) for a, b in zip(*pair)) / len(pair[0])
        if difference > 6:
            wrong.append(f"{path.name}: the mean difference of colours is {difference:.1f}")
    print(json.dumps(wrong))


if len(sys.argv) > 2:
    compare(pathlib.Path(sys.argv[2]))
else:
    formats()
    metadata()
    broken()
    print(json.dumps(CASES))
