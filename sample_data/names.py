"""Given and family names of the sample's countries, each with the letters that an e-mail address would use.

Names of other scripts carry their romanisation after an equals sign; for the rest it is made by dropping
the accents. No name holds a comma, an ampersand or a semicolon.
"""

from __future__ import annotations

import unicodedata

_ENGLISH = (
    "James Mary Robert Patricia John Jennifer Michael Linda David Elizabeth William Barbara Richard Susan Joseph "
    "Karen Thomas Nancy Daniel Lisa Siobhan Graham Nigel Fiona",
    "Smith Johnson Williams Brown Jones Miller Davis Wilson Anderson Taylor Moore Jackson Martin Lee Thompson White "
    "Harris Clark O'Brien O'Connor McDonald Fitzgerald D'Arcy Whitfield",
)

_GERMAN = (
    "Jürgen Björn Käthe Günter Sören Jörg Hans Ute Klaus Sabine Wolfgang Monika Stefan Petra Andreas Heike Uwe Anja "
    "Matthias Gisela Rüdiger Bärbel",
    "Müller Schmidt Schneider Fischer Weber Meyer Wagner Becker Schulz Hoffmann Schäfer Koch Bauer Richter Klein Wolf "
    "Schröder Neumann Schwarz Krüger Köhler Weiß Großmann Böhm Jäger",
)

_SPANISH = (
    "María José Antonio Carmen Juan Ana Manuel Lucía Jesús Sofía Andrés Inés Álvaro Pilar Íñigo Begoña Raúl Mónica "
    "Joaquín Núria Óscar Verónica",
    "García González Rodríguez Fernández López Martínez Sánchez Pérez Gómez Martín Jiménez Ruiz Hernández Díaz Moreno "
    "Muñoz Álvarez Romero Alonso Gutiérrez Ibáñez Núñez Peña Zúñiga",
)

_PORTUGUESE = (
    "João Maria José Ana António Inês Luís Conceição Paulo Beatriz Tiago Joana Rui Helena Sérgio Fátima Cauã Luíza "
    "Antônio Patrícia",
    "Silva Santos Ferreira Pereira Oliveira Costa Rodrigues Martins Gonçalves Sousa Fernandes Araújo Magalhães Simões "
    "Conceição Leitão Brandão Assunção Guimarães Falcão",
)

_FRENCH = (
    "Jean Marie Pierre Françoise Michel Hélène André Céline Gérard Zoé René Aurélie Benoît Joël Chloé Gaëlle Jérôme "
    "Agnès Loïc Mathilde",
    "Martin Bernard Dubois Thomas Robert Richard Petit Durand Leroy Moreau Lefèvre Béranger Gérard Françon Lemaître "
    "Benoît Châtelet Deschênes Côté Bélanger d'Estaing",
)

_NAMES: dict[str, tuple[str, str]] = {
    "US": _ENGLISH,
    "GB": _ENGLISH,
    "AU": _ENGLISH,
    "CA": _FRENCH,
    "FR": _FRENCH,
    "DE": _GERMAN,
    "AT": _GERMAN,
    "CH": _GERMAN,
    "ES": _SPANISH,
    "MX": _SPANISH,
    "BR": _PORTUGUESE,
    "PT": _PORTUGUESE,
    "IT": (
        "Giuseppe Maria Giovanni Anna Antonio Giulia Niccolò Rosa Mario Angela Francesco Lucia Luigi Chiara Nicolò "
        "Paola Salvatore Noè",
        "Rossi Russo Ferrari Esposito Bianchi Romano Colombo Ricci Marino Greco Bruno Gallo Conti D'Angelo Dell'Orto "
        "Costa Giordano Mancini",
    ),
    "NL": (
        "Jan Johanna Pieter Maria Kees Anneke Daniël Sanne Willem Femke Joost Zoë Hendrik Marijke Sjoerd Lotte Renée "
        "Thijs",
        "de_Jong Jansen de_Vries van_den_Berg Bakker van_Dijk Visser Smit Meijer de_Boer Mulder Bos Vos Peters "
        "Hendriks van_Leeuwen Dekker 't_Hart",
    ),
    "PL": (
        "Łukasz Małgorzata Paweł Agnieszka Michał Katarzyna Tomasz Zofia Krzysztof Joanna Grzegorz Bożena Wojciech "
        "Elżbieta Stanisław Kinga",
        "Nowak Kowalski Wiśniewski Wójcik Kowalczyk Kamiński Lewandowski Zieliński Szymański Woźniak Dąbrowski "
        "Kozłowski Jankowski Wojciechowski Łukaszewicz Żak",
    ),
    "CZ": (
        "Jiří Jana Tomáš Kateřina Ondřej Věra Lukáš Božena Zdeněk Lenka Václav Eliška Matěj Růžena Petr Alžběta",
        "Novák Svoboda Dvořák Černý Procházka Kučera Veselý Horák Němec Pokorný Krejčí Růžička Šimek Beneš Fiala Řezníček",
    ),
    "SE": (
        "Lars Anna Karl Åsa Göran Märta Björn Kerstin Sören Åke Elin Håkan Ebba Örjan Linnéa Sven",
        "Andersson Johansson Karlsson Nilsson Eriksson Larsson Sjöberg Åkesson Lindström Bergström Öberg Hägglund "
        "Nyström Sandström Wallén Björk",
    ),
    "DK": (
        "Søren Anne Jørgen Mette Lærke Bjørn Kirsten Frederik Åse Jens Bodil Henrik Sofie Poul Birgitte Niels",
        "Jensen Nielsen Hansen Pedersen Andersen Sørensen Jørgensen Møller Kjær Østergaard Nørgaard Thorsen Bæk Lund "
        "Højgaard Skov",
    ),
    "TR": (
        "Mehmet Ayşe Çağla Gökhan Zeynep Şükrü İbrahim Özlem Emre Gülşen Oğuz Elif Barış Tuğba Cem Yıldız",
        "Yılmaz Kaya Demir Çelik Şahin Yıldırım Öztürk Aydın Özdemir Arslan Doğan Kılıç Aslan Çetin Koç Güneş",
    ),
    "GR": (
        "Γιώργος=giorgos Μαρία=maria Δημήτρης=dimitris Ελένη=eleni Κώστας=kostas Σοφία=sofia Νίκος=nikos Άννα=anna "
        "Παναγιώτης=panagiotis Κατερίνα=katerina Θανάσης=thanasis Ειρήνη=irini",
        "Παπαδόπουλος=papadopoulos Γεωργίου=georgiou Νικολάου=nikolaou Οικονόμου=ikonomou Βλάχος=vlachos "
        "Μακρής=makris Αγγελόπουλος=angelopoulos Κωνσταντίνου=konstantinou Δημητρίου=dimitriou Καραγιάννης=karagiannis",
    ),
    "UA": (
        "Олександр=oleksandr Марія=maria Ігор=ihor Олена=olena Андрій=andrii Наталія=nataliia Тарас=taras "
        "Юлія=yuliia Богдан=bohdan Ганна=hanna Сергій=serhii Оксана=oksana",
        "Шевченко=shevchenko Бондаренко=bondarenko Коваленко=kovalenko Ткаченко=tkachenko Кравчук=kravchuk "
        "Мельник=melnyk Поліщук=polishchuk Лисенко=lysenko Гнатюк=hnatiuk Їжакевич=yizhakevych",
    ),
    "IL": (
        "דוד=david שרה=sara משה=moshe רחל=rachel יוסף=yosef נועה=noa אברהם=avraham תמר=tamar איתן=eitan מיכל=michal",
        "כהן=cohen לוי=levi מזרחי=mizrahi פרץ=peretz ביטון=biton דהן=dahan אברהם=avraham פרידמן=friedman "
        "שפירא=shapira גולדברג=goldberg",
    ),
    "EG": (
        "محمد=mohamed فاطمة=fatma أحمد=ahmed مريم=mariam محمود=mahmoud نور=nour يوسف=youssef هدى=hoda خالد=khaled سلمى=salma",
        "حسن=hassan علي=ali إبراهيم=ibrahim السيد=elsayed عبد_الله=abdallah منصور=mansour فاروق=farouk سليمان=soliman "
        "رشاد=rashad شاهين=shahin",
    ),
    "IN": (
        "Aarav Priya Rahul Ananya Vijay Lakshmi अमित=amit सुनीता=sunita राजेश=rajesh दीपा=deepa Sanjay Meera Arjun Kavya",
        "Sharma Patel Reddy Iyer Nair Gupta सिंह=singh वर्मा=verma मिश्रा=mishra Kulkarni Chatterjee Menon Rao Deshpande",
    ),
    "CN": (
        "伟=wei 芳=fang 娜=na 秀英=xiuying 敏=min 静=jing 丽=li 强=qiang 磊=lei 军=jun 洋=yang 艳=yan 勇=yong 杰=jie",
        "王=wang 李=li 张=zhang 刘=liu 陈=chen 杨=yang 赵=zhao 黄=huang 周=zhou 吴=wu 徐=xu 孙=sun 欧阳=ouyang 司马=sima",
    ),
    "JP": (
        "太郎=taro 花子=hanako 健=ken 美咲=misaki 翔太=shota 陽菜=hina 大輔=daisuke さくら=sakura 誠=makoto 由美子=yumiko "
        "拓海=takumi 愛=ai",
        "佐藤=sato 鈴木=suzuki 高橋=takahashi 田中=tanaka 渡辺=watanabe 伊藤=ito 山本=yamamoto 中村=nakamura 小林=kobayashi "
        "加藤=kato 髙島=takashima 齋藤=saito",
    ),
    "KR": (
        "민준=minjun 서연=seoyeon 지훈=jihoon 수빈=subin 현우=hyunwoo 지은=jieun 영수=youngsoo 미경=mikyung 성호=sungho 은지=eunji",
        "김=kim 이=lee 박=park 최=choi 정=jung 강=kang 조=cho 윤=yoon 장=jang 임=lim",
    ),
    "VN": (
        "Anh Bình Châu Dũng Giang Hương Khánh Linh Minh Ngọc Phúc Quỳnh Sơn Thảo Tuấn Yến",
        "Nguyễn Trần Lê Phạm Hoàng Huỳnh Phan Vũ Võ Đặng Bùi Đỗ Hồ Ngô Dương Lý",
    ),
}

COUNTRIES: list[str] = list(_NAMES)
"""ISO codes of the countries that records come from."""

_LETTERS = str.maketrans(
    {"ß": "ss", "ø": "o", "Ø": "o", "ł": "l", "Ł": "l", "ı": "i", "đ": "d", "Đ": "d", "æ": "ae", "Æ": "ae"}
)


def ascii_letters(text: str) -> str:
    """The letters a-z of a name of a Latin script, in lower case, accents dropped."""
    plain = unicodedata.normalize("NFKD", text.translate(_LETTERS)).lower()
    return "".join(c for c in plain if "a" <= c <= "z")


def _pool(words: str) -> tuple[list[str], list[str]]:
    shown, plain = [], []
    for word in words.split():
        name, _, roman = word.partition("=")
        name = name.replace("_", " ")
        shown.append(name)
        plain.append(roman or ascii_letters(name))
    return shown, plain


class NamePool:
    """All names of one sort over all countries in one list, with where each country's stretch begins."""

    def __init__(self, part: int) -> None:
        self.names: list[str] = []
        self.letters: list[str] = []
        self.start: list[int] = []
        self.size: list[int] = []
        for country in COUNTRIES:
            shown, plain = _pool(_NAMES[country][part])
            self.start.append(len(self.names))
            self.size.append(len(shown))
            self.names.extend(shown)
            self.letters.extend(plain)


GIVEN = NamePool(0)
FAMILY = NamePool(1)
